#!/usr/bin/env bash
# Train a kernel log-linear model whose basis vectors are searched for, on Kaldi features and alignments.
# Usage: steps/train_pursuit.sh [options] <data-tr> <data-cv> <lang> <ali-tr> <ali-cv> <exp>
# e.g.: steps/train_pursuit.sh --kernel polynomial:2 data/train data/heldout data/lang exp/mono_ali exp/mono_ali_cv exp/pursuit
# A run that was ended goes on where it was.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

kernel=gaussian                 # or polynomial:2, polynomial:3; polynomial:1 is linear
bandwidth=1                     # multiples of the median distance of random frames; several to choose from
penalty=1                       # c, that of the squared norm; several to choose from on heldout frames
basis=1000                      # basis vectors in the end
first=10                        # random frames that it begins with
added=10                        # vectors that a round adds
method=orthogonal               # from orthogonalised gradients; joint: all of a round at once; nystrom: random frames
priors=uniform                  # what decoding divides by; counts: shares of the training frames
feat_type=plain                 # features as they are, or deltas, lda, fmllr by the options and files of <ali-tr>
cmvn_opts=                      # CMVN per speaker, e.g. "--norm-means=true --norm-vars=true"
delta_order=0                   # deltas appended
splice=5                        # frames of context on either side
scaling=each                    # of inputs: each to mean 0 and variance 1; shared: all by one number, as suits pixels
seed=1                          # of random frames
device=cpu                      # cpu or cuda
num_threads=0                   # 0: all cores
cmd=run_local.sh                # where the job runs

parse_options "$@"
usage 6
need "${args[0]}/feats.scp" "${args[1]}/feats.scp" "${args[2]}/phones.txt" \
    "${args[3]}/final.mdl" "${args[3]}/tree" "${args[4]}/final.mdl"
dir=${args[5]}
mkdir -p "$dir/log"
((num_threads > 0)) || num_threads=$(cores)
$cmd --num-threads "$num_threads" "$dir/log/train.log" \
    kernelam train pursuit --kernel "$kernel" --bandwidth "$bandwidth" --penalty "$penalty" --basis "$basis" \
    --first "$first" --added "$added" --method "$method" --priors "$priors" --feat-type "$feat_type" \
    --cmvn-opts "$cmvn_opts" --delta-order "$delta_order" --splice "$splice" --scaling "$scaling" --seed "$seed" --device "$device" \
    "${args[@]}"
warnings "$dir/log/train.log"
echo "$0: the model is in $dir" >&2
