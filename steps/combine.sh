#!/usr/bin/env bash
# Combine trained models (kernel, DNN, other combinations) into one: a weighted sum of their logits. The weights are those
# of maximum likelihood on <data-cv> with the labels <ali-cv>. With --weights these two are only checked.
# Usage: steps/combine.sh [options] <data-cv> <lang> <ali-cv> <model-dir-1> <model-dir-2> … <exp>
# e.g.: steps/combine.sh data/heldout data/lang exp/tri3_ali_heldout exp/kernel exp/dnn exp/kernel_dnn
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

weights=                        # one for each model, e.g. "0.4 0.6", instead of fitting them
device=cpu                      # cpu or cuda
num_threads=0                   # 0: all cores
cmd=run_local.sh                # where the job runs

parse_options "$@"
set -- "${args[@]}"
args=("${@:1:6}")  # as many models as there are
usage 6
dir=${!#}

need "$1/feats.scp" "$2/phones.txt" "$3/final.mdl" "$3/tree"
mkdir -p "$dir/log"
((num_threads > 0)) || num_threads=$(cores)
$cmd --num-threads "$num_threads" "$dir/log/combine.log" \
    kernelam combine --weights "$weights" --device "$device" "$@"
warnings "$dir/log/combine.log"
awk '/^weight |^combination, /' < "$dir/log/combine.log" >&2
echo "$0: combined $dir" >&2
