#!/usr/bin/env bash
# Train a feed-forward network of tanh units on Kaldi features and alignments.
# Usage: steps/train_dnn.sh [options] <data-tr> <data-cv> <lang> <ali-tr> <ali-cv> <exp>
# e.g.: steps/train_dnn.sh data/train data/heldout data/lang exp/tri3_ali exp/tri3_ali_heldout exp/dnn
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

layers=4                        # hidden layers
width=1000                      # units in each
cmvn_opts=                      # CMVN per speaker, e.g. "--norm-means=true --norm-vars=true"
delta_order=0                   # deltas appended
splice=5                        # frames of context on either side
rates="0.05 0.1 0.2"            # learning rates to choose from on heldout frames
search_frames=100000            # frames that each of them is tried on
max_epochs=20                   # training ends here at the latest
max_halvings=6                  # or with this many halvings of the learning rate
metric=ce                       # what the halving rule watches: ce or erll
seed=1                          # of the first weights and of the order of frames
device=cpu                      # cpu or cuda
num_threads=0                   # 0: all cores
cmd=$root/utils/run_local.sh    # where the job runs

parse_options "$@"
usage 6
set -- "${args[@]}"
dir=$6

need "$1/feats.scp" "$2/feats.scp" "$3/phones.txt" "$4/final.mdl" "$4/tree" "$5/final.mdl"
mkdir -p "$dir/log"
((num_threads > 0)) || num_threads=$(nproc)
$cmd --num-threads "$num_threads" "$dir/log/train.log" \
    kernelam train dnn --layers "$layers" --width "$width" \
    --cmvn-opts "$cmvn_opts" --delta-order "$delta_order" --splice "$splice" \
    --rates "$rates" --search-frames "$search_frames" --max-epochs "$max_epochs" --max-halvings "$max_halvings" \
    --metric "$metric" --seed "$seed" --device "$device" "$@"
echo "$0: trained $dir" >&2
