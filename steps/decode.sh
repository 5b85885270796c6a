#!/usr/bin/env bash
# Decode a data directory with a graph, and score it; the model is in the parent of the decode directory.
# Usage: steps/decode.sh [options] <graph> <data> <decode-dir>
# e.g.: steps/decode.sh --nj 4 exp/mono/graph data/dev exp/kernel/decode_dev
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

nj=4                            # jobs
cmd=run_local.sh                # where they run
acwt=0.1                        # acoustic scale of the search
beam=13                         # of the search
lattice_beam=8                  # of the lattices
max_active=7000                 # tokens followed at most from frame to frame
min_active=200                  # and at least
decoder=embedded                # embedded, or kaldi: latgen-faster-mapped on the PATH or under KALDI_ROOT
model=                          # another file than final.mdl in the parent directory, such as final.alimdl
transform_dir=                  # fMLLR transforms of the speakers, trans.*: a decode or alignment directory
device=cpu                      # cpu or cuda
tuned_on=                       # a scored decode directory whose weights are used; without, they are tuned here
scoring_opts=                   # options of steps/score.sh, e.g. "--min-lmwt 5 --word-ins-penalty 0.0,0.5"
skip_scoring=false              # only make lattices

parse_options "$@"
usage 3
set -- "${args[@]}"
graph=$1 data=$2 dir=$3
src=$(dirname "$dir")

[[ $decoder == embedded || $decoder == kaldi ]] || die "--decoder takes embedded or kaldi, not $decoder"
need "$graph/HCLG.fst" "$graph/words.txt" "$data/feats.scp"
[[ -e $src/final.mdl ]] || die "no such file $src/final.mdl: the model must be in the parent of the decode directory"
$skip_scoring || need "$data/text"
[[ -z $tuned_on ]] || need "$tuned_on/scoring_kaldi/best_wer"
new=$dir/.new  # what an earlier run made stays until all of this one is there
mkdir -p "$dir/log"
alone_in "$dir"
trap 'rm -rf "$new"' EXIT
rm -rf "$new" "$dir"/split*utt
mkdir "$new"
cp "$graph/words.txt" "$new"
[[ ! -e $src/model.json ]] || cp "$src/model.json" "$new"  # which model this was, should another take its place
kernelam data split --per-utt --dest "$dir" "$data" "$nj"
$cmd JOB=1:"$nj" "$dir/log/decode.JOB.log" \
    kernelam decode --acwt "$acwt" --beam "$beam" --lattice-beam "$lattice_beam" \
    --max-active "$max_active" --min-active "$min_active" --decoder "$decoder" --device "$device" \
    ${transform_dir:+--transform-dir "$transform_dir"} \
    "$graph" "${model:-$src}" "$dir/split${nj}utt/JOB" "$new/lat.JOB.gz"
for ((job = 1; job <= nj; job++)); do warnings "$dir/log/decode.$job.log"; done
publish_lattices "$new" "$dir" "$nj"
# shellcheck disable=SC2086  # several words
$skip_scoring || "$root/steps/score.sh" --cmd "$cmd" ${tuned_on:+--tuned-on "$tuned_on"} $scoring_opts "$data" "$graph" "$dir"
