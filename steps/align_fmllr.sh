#!/usr/bin/env bash
# Align a data directory with a GMM trained on adapted features, estimating the fMLLR transforms of its speakers.
# Usage: steps/align_fmllr.sh [options] <data> <lang> <model-dir> <ali-dir>
# Alignment is exact: Kaldi's --beam and --retry-beam are accepted and have no effect.
# e.g.: steps/align_fmllr.sh --nj 4 data/train data/lang exp/tri3 exp/tri3_ali
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

nj=4                            # jobs
cmd=run_local.sh                # where they run
boost_silence=1.0               # factor on the likelihoods of optional silence
silence_weight=0.0              # of silence in the transforms
beam=10                         # no effect
retry_beam=40                   # no effect

parse_options "$@"
usage 4
set -- "${args[@]}"
data=$1 lang=$2 src=$3 dir=$4
: "$beam" "$retry_beam"

need "$data/spk2utt" "$src/final.mdl"
judge=$src/final.alimdl
[[ -e $judge ]] || judge=$src/final.mdl
first=$dir/first_pass
mkdir -p "$dir"
alone_in "$dir"
trap 'rm -rf "$first"' EXIT
rm -rf "$first"
align=("$root/steps/align.sh" --nj "$nj" --cmd "$cmd" --boost-silence "$boost_silence")
"${align[@]}" --model "$judge" "$data" "$lang" "$src" "$first"
speaker_jobs=$(speaker_jobs "$data" "$nj")
kernelam data split --dest "$first" "$data" "$speaker_jobs"
mkdir "$first/trans"
echo "$speaker_jobs" > "$first/trans/num_jobs"
$cmd JOB=1:"$speaker_jobs" "$dir/log/fmllr.JOB.log" kernelam gmm fmllr --silence-weight "$silence_weight" \
    --judge "$judge" --features "$judge" "$src/final.mdl" "$first/split$speaker_jobs/JOB" "$lang" "$first" \
    "$first/trans/trans.JOB"
warnings "$dir"/log/fmllr.*.log
"${align[@]}" --transform-dir "$first/trans" "$data" "$lang" "$src" "$dir"
