#!/usr/bin/env bash
# Replace the language model in lattices by another, larger one, and score them.
# Usage: steps/lmrescore.sh [options] <old-lang> <new-lang> <data> <decode-dir> <out-dir>
# Only G.fst and words.txt of the lang directories are read; <old-lang> is the one that the lattices were decoded with. A
# word takes its own n-gram or, if there is none, the backoff.
# e.g.: steps/lmrescore.sh data/lang_test data/lang_big data/dev exp/kernel/decode_dev exp/kernel/decode_dev_big
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

cmd=run_local.sh                # where jobs run
skip_scoring=false              # only rescore
scoring_opts=                   # of steps/score.sh
tuned_on=                       # a scored decode directory whose weights are used; without, they are tuned here

parse_options "$@"
usage 5
set -- "${args[@]}"
old=$1 new=$2 data=$3 src=$4 dir=$5

need "$old"/{G.fst,words.txt} "$new"/{G.fst,words.txt}
$skip_scoring || need "$data/text"
[[ -z $tuned_on ]] || need "$tuned_on/scoring_kaldi/best_wer"
[[ ! $dir -ef $src ]] || die "$dir has the lattices to rescore; name another directory for the new ones"
nj=$(jobs_of "$src")
new_lattices=$dir/.new  # what an earlier run made stays until all of this one is there
mkdir -p "$dir/log"
alone_in "$dir"
trap 'rm -rf "$new_lattices"' EXIT
rm -rf "$new_lattices"
mkdir "$new_lattices"
cp "$new/words.txt" "$new_lattices"
[[ ! -e $src/model.json ]] || cp "$src/model.json" "$new_lattices"
$cmd JOB=1:"$nj" "$dir/log/rescore.JOB.log" \
    kernelam lattice rescore --output "$new_lattices/lat.JOB.gz" "$old" "$new" "$src/lat.JOB.gz"
publish_lattices "$new_lattices" "$dir" "$nj"
# shellcheck disable=SC2086  # several words
$skip_scoring || "$root/steps/score.sh" --cmd "$cmd" ${tuned_on:+--tuned-on "$tuned_on"} $scoring_opts "$data" "$new" "$dir"
