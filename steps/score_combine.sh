#!/usr/bin/env bash
# Decode the lattices of several systems together and score the result: the words of least expected errors (minimum Bayes
# risk) in the union of their lattices. The systems need only share words.txt. Each keeps the LM weight and word insertion
# penalty that it was scored with. The weights of two systems are tuned on this set; more than two have equal weights. A
# single system is decoded by minimum Bayes risk alone.
# Usage: steps/score_combine.sh [options] <data> <lang|graph> <decode-dir-1> [<decode-dir-2> …] <out-dir>
# e.g.: steps/score_combine.sh --tuned-on exp/both/decode_dev data/test exp/graph exp/{kernel,dnn}/decode_test exp/both/decode_test
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

cmd=run_local.sh                # where the job runs
tuned_on=                       # a scored combination of the same systems, in that order, whose weights are used
units=words                     # what is scored: words, characters, others that `kernelam score text --help` lists, or a map

parse_options "$@"
set -- "${args[@]}"
args=("${@:1:4}")  # as many systems as there are
usage 4
data=$1 lang=$2 dir=${!#}
systems=("${@:3:$#-3}")

need "$data/text" "$lang/words.txt"
need_units "$units"
[[ -z $tuned_on ]] || need "$tuned_on/scoring_kaldi/result.json"
for system in "${systems[@]}"; do
    need "$system/num_jobs"
    [[ -n $tuned_on ]] || need "$system/scoring_kaldi/best_wer"
done
[[ ! -e $dir/num_jobs ]] || die "$dir is a decode directory: name another one last, for the combination"
mkdir -p "$dir/log"
alone_in "$dir"
$cmd "$dir/log/combine.log" \
    kernelam score combine --units "$units" ${tuned_on:+--tuned-on "$tuned_on"} "$data" "$lang/words.txt" "${systems[@]}" "$dir"
warnings "$dir/log/combine.log"
cat "$dir/scoring_kaldi/best_wer"
