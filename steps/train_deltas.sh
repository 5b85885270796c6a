#!/usr/bin/env bash
# Train a GMM-HMM of states in context on features with deltas.
# Usage: steps/train_deltas.sh [options] <num-leaves> <tot-gauss> <data> <lang> <ali> <exp>
# CMVN is that of <ali>. With fewer frames than <num-leaves> need, the tree stays smaller.
# e.g.: steps/train_deltas.sh --nj 4 2000 10000 data/train data/lang exp/mono_ali exp/tri1
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"
. "$root/utils/gmm.sh"

delta_opts="--delta-order=2"          # deltas and their deltas

parse_options "$@"
usage 6
begin_gmm
echo "$delta_opts" > "$dir/delta_opts"
$cmd "$dir/log/pack.log" kernelam gmm pack --feat-type deltas "$data" "$dir" "$dir/frames"
grow_tree
train_rounds "" :
kernelam gmm finish --seconds "$SECONDS" --seed "$seed" "$dir/$num_iters.mdl" "$dir"
echo "$0: trained $dir/final.mdl" >&2
