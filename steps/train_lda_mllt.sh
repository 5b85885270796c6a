#!/usr/bin/env bash
# Train a GMM-HMM of states in context on LDA of spliced features, turned by MLLT.
# Usage: steps/train_lda_mllt.sh [options] <num-leaves> <tot-gauss> <data> <lang> <ali> <exp>
# CMVN is that of <ali>. With fewer frames than <num-leaves> need, the tree stays smaller.
# e.g.: steps/train_lda_mllt.sh --nj 4 2500 15000 data/train data/lang exp/tri1_ali exp/tri2
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"
. "$root/utils/gmm.sh"

dim=40                                                # of the features that LDA makes
splice_opts="--left-context=3 --right-context=3"      # frames of context
mllt_iters="2 4 6 12"                                 # steps of EM before which MLLT is estimated

parse_options "$@"
usage 6
begin_gmm
echo "$splice_opts" > "$dir/splice_opts"
$cmd "$dir/log/lda.log" kernelam gmm lda --dim "$dim" "$data" "$lang" "$ali" "$dir"
$cmd "$dir/log/pack.log" kernelam gmm pack --feat-type lda "$data" "$dir" "$dir/frames"
grow_tree
turn() { $cmd "$dir/log/mllt.$1.log" kernelam gmm mllt "$dir/$1.mdl" "$lang" "$dir"; }
train_rounds "$mllt_iters" turn
kernelam gmm finish --seconds "$SECONDS" --seed "$seed" "$dir/$num_iters.mdl" "$dir"
echo "$0: trained $dir/final.mdl" >&2
