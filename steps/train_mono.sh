#!/usr/bin/env bash
# Train a monophone GMM-HMM from a flat start.
# Usage: steps/train_mono.sh [options] <data> <lang> <exp>
# Alignment is exact: Kaldi's --beam and --retry-beam are accepted and have no effect.
# e.g.: steps/train_mono.sh --nj 4 data/train data/lang exp/mono
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"
. "$root/utils/em.sh"

nj=4                                  # jobs that align
cmd=run_local.sh                      # where they run
num_iters=14                          # rounds of alignment and re-estimation
max_iter_inc=10                       # the last round that adds Gaussians
totgauss=1000                         # Gaussians to end with
cmvn_opts="--norm-means=true"         # CMVN per speaker
delta_order=2                         # deltas and their deltas
boost_silence=1.0                     # factor on the likelihoods of optional silence when aligning
beam=10                               # no effect
retry_beam=40                         # no effect
seed=1                                # of the directions in which Gaussians are split

parse_options "$@"
usage 3
set -- "${args[@]}"
data=$1 lang=$2 dir=$3
: "$beam" "$retry_beam"

need "$data/feats.scp" "$data/text" "$lang/L.fst" "$lang/topo"
no_model_in "$dir" model.safetensors
mkdir -p "$dir/log"
alone_in "$dir"
rm -rf "$dir"/final.mdl "$dir"/model.json "$dir"/num_jobs "$dir"/ali.*.gz "$dir"/split*utt
kernelam data split --per-utt --dest "$dir" "$data" "$nj"
echo "$nj" > "$dir/num_jobs"
keep_feature_opts "$data" "$dir"

$cmd "$dir/log/init.log" kernelam gmm init --cmvn-opts "$cmvn_opts" --delta-order "$delta_order" "$data" "$lang" "$dir"
# While variances are those of all frames, a frame goes to the nearest mean. Otherwise what resembles neither speech nor
# silence, a click or digital zeros, goes to whatever varies most, a word, and stays there.
gauss=0 flat=$((max_iter_inc * 2 / 5))
for ((x = 0; x < num_iters; x++)); do
    realign "$x" --equal "$( ((x)) && echo false || echo true)"
    ((x < flat || x > max_iter_inc)) || gauss=$((totgauss * (x - flat + 1) / (max_iter_inc - flat + 1)))
    update_model "$x" $((x + 1)) "0 0 $gauss" --means-only "$( ((x < flat)) && echo true || echo false)"
done
kernelam gmm finish --seconds "$SECONDS" --seed "$seed" "$dir/$num_iters.mdl" "$dir"
echo "$0: trained $dir/final.mdl" >&2
