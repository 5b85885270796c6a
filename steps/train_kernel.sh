#!/usr/bin/env bash
# Train a kernel acoustic model on Kaldi features and alignments.
# Usage: steps/train_kernel.sh [options] <data-tr> <data-cv> <lang> <ali-tr> <ali-cv> <exp>
# e.g.: steps/train_kernel.sh data/train data/heldout data/lang exp/tri3_ali exp/tri3_ali_heldout exp/kernel
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

kernel=gaussian                 # the kernel
bandwidth=1.0                   # 2σ² as a multiple of the median squared distance of random frames
num_features=25000              # random features D
bottleneck=0                    # rank of the output matrix; 0 trains it whole
cmvn_opts=                      # CMVN per speaker, e.g. "--norm-means=true --norm-vars=true"
delta_order=0                   # deltas appended
splice=5                        # frames of context on either side
rates="8 16 32"                 # learning rates to choose from on heldout frames
search_frames=100000            # frames that each of them is tried on
max_epochs=20                   # training ends here at the latest
max_halvings=6                  # or with this many halvings of the learning rate
metric=ce                       # what the halving rule watches: ce or erll
seed=1                          # of random features and of the order of frames
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
    kernelam train kernel --kernel "$kernel" --bandwidth "$bandwidth" --num-features "$num_features" \
    --bottleneck "$bottleneck" --cmvn-opts "$cmvn_opts" --delta-order "$delta_order" --splice "$splice" \
    --rates "$rates" --search-frames "$search_frames" --max-epochs "$max_epochs" --max-halvings "$max_halvings" \
    --metric "$metric" --seed "$seed" --device "$device" "$@"
echo "$0: trained $dir" >&2
