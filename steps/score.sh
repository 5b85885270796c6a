#!/usr/bin/env bash
# Score the lattices of a decode directory: LM weight and word insertion penalty are tuned on it, or taken from another.
# Usage: steps/score.sh [options] <data> <lang|graph> <decode-dir>
# e.g.: steps/score.sh --tuned-on exp/kernel/decode_dev data/test exp/mono/graph exp/kernel/decode_test
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

cmd=run_local.sh                # where jobs run
tuned_on=                       # a scored decode directory whose weights are used; without, they are tuned here
min_lmwt=7                      # the least LM weight
max_lmwt=17                     # the greatest
word_ins_penalty=0.0,0.5,1.0    # word insertion penalties
units=words                     # what is scored: words, characters, others that `kernelam score text --help` lists, or a map
stm=false                       # by times against <data>/stm, after the rules of <data>/glm if there are any

parse_options "$@"
usage 3
set -- "${args[@]}"
data=$1 lang=$2 dir=$3

need "$data/$($stm && echo stm || echo text)" "$lang/words.txt"
((min_lmwt <= max_lmwt)) || die "--min-lmwt $min_lmwt is above --max-lmwt $max_lmwt"
need_units "$units"
! $stm || need "$(dirname "$dir")/final.mdl" "$data/segments" "$data/reco2file_and_channel"
! $stm || [[ $units == words ]] || die "--stm scores words, not $units"
[[ -z $tuned_on ]] || need "$tuned_on/scoring_kaldi/best_wer"
nj=$(jobs_of "$dir")
alone_in "$dir"
paths=() times=()
! $stm || times=(--times "$(dirname "$dir")")
for ((job = 1; job <= nj; job++)); do paths+=("$dir/paths.$job"); done
trap 'rm -f "${paths[@]}"' EXIT
$cmd JOB=1:"$nj" "$dir/log/paths.JOB.log" \
    kernelam score paths --lmwts "$(seq -s ' ' "$min_lmwt" "$max_lmwt")" --penalties "$word_ins_penalty" ${tuned_on:+--tuned-on "$tuned_on"} \
    "${times[@]}" "$lang/words.txt" "$dir/lat.JOB.gz" "$dir/paths.JOB"
kernelam score write --units "$units" --stm "$stm" ${tuned_on:+--tuned-on "$tuned_on"} "$data" "$dir" "${paths[@]}"
