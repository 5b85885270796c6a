#!/usr/bin/env bash
# Decode with a GMM trained on adapted features, in passes that estimate the fMLLR transforms of the speakers, and score.
# Usage: steps/decode_fmllr.sh [options] <graph> <data> <decode-dir>
# The first pass uses final.alimdl and no transforms; the second uses transforms estimated on the lattices of the first, and
# the last those estimated on the lattices of the second, which are kept in <decode-dir>/trans.*.
# e.g.: steps/decode_fmllr.sh --nj 4 exp/tri3/graph data/dev exp/tri3/decode_dev
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

nj=4                            # jobs
cmd=run_local.sh                # where they run
acwt=0.083333                   # acoustic scale of the search
beam=13                         # of the search
lattice_beam=6                  # of the lattices
max_active=7000                 # tokens followed at most from frame to frame
first_beam=10                   # of the search in the passes before the last
first_max_active=2000           # and their tokens
silence_weight=0.01             # of silence in the transforms
tuned_on=                       # a scored decode directory whose weights are used; without, they are tuned here
scoring_opts=                   # options of steps/score.sh, e.g. "--min-lmwt 5 --word-ins-penalty 0.0,0.5"
skip_scoring=false              # only make lattices

parse_options "$@"
usage 3
set -- "${args[@]}"
graph=$1 data=$2 dir=$3
src=$(dirname "$dir")

need "$graph/HCLG.fst" "$data/feats.scp" "$data/spk2utt" "$src/final.mdl"
judge=$src/final.alimdl
[[ -e $judge ]] || judge=$src/final.mdl
mkdir -p "$dir/log"
alone_in "$dir"
passes=$dir/passes
trap 'rm -rf "$passes"' EXIT
rm -rf "$passes"
mkdir "$passes"
ln -s "$(readlink -f "$src/final.mdl")" "$passes/final.mdl"
speaker_jobs=$(speaker_jobs "$data" "$nj")
kernelam data split --dest "$passes" "$data" "$speaker_jobs"
decode=("$root/steps/decode.sh" --nj "$nj" --cmd "$cmd" --acwt "$acwt" --lattice-beam "$lattice_beam")
early=("${decode[@]}" --beam "$first_beam" --max-active "$first_max_active" --skip-scoring true)

estimate() {  # estimate LATTICES OUT OPTIONS…
    local lattices=$1 out=$2
    shift 2
    mkdir "$out"
    echo "$speaker_jobs" > "$out/num_jobs"
    $cmd JOB=1:"$speaker_jobs" "$dir/log/$(basename "$out").JOB.log" \
        kernelam gmm fmllr --silence-weight "$silence_weight" --acwt "$acwt" "$@" "$src/final.mdl" \
        "$passes/split$speaker_jobs/JOB" "$graph" "$lattices" "$out/trans.JOB"
    warnings "$dir/log/$(basename "$out")".*.log
}

"${early[@]}" --model "$judge" "$graph" "$data" "$passes/first"
estimate "$passes/first" "$passes/fmllr1" --judge "$judge" --features "$judge"
"${early[@]}" --model "$src/final.mdl" --transform-dir "$passes/fmllr1" "$graph" "$data" "$passes/second"
estimate "$passes/second" "$passes/fmllr2" --transform-dir "$passes/fmllr1"
"${decode[@]}" --beam "$beam" --max-active "$max_active" --skip-scoring "$skip_scoring" --transform-dir "$passes/fmllr2" \
    ${tuned_on:+--tuned-on "$tuned_on"} --scoring-opts "$scoring_opts" "$graph" "$data" "$dir"
rm -f "$dir"/trans.*
for ((job = 1; job <= nj; job++)); do : > "$dir/trans.$job"; done
for ((job = 1; job <= speaker_jobs; job++)); do cat "$passes/fmllr2/trans.$job" >> "$dir/trans.1"; done
