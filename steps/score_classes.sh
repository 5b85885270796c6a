#!/usr/bin/env bash
# Classify utterances that have one class each, such as images, and count errors; the model is in the parent of <dir>.
# Usage: steps/score_classes.sh [options] <lang> <data> <dir>
# e.g.: steps/score_classes.sh data/lang data/test exp/svm/decode_test
# It takes the place of steps/decode.sh, with its arguments, where there is nothing to search for.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

device=cpu                      # cpu or cuda
tuned_on=                       # the directory of a set that choices were made on, for reports

parse_options "$@"
usage 3
set -- "${args[@]}"
lang=$1 data=$2 dir=$3

need "$lang/words.txt" "$data/feats.scp" "$data/text"
[[ -e $(dirname "$dir")/model.json ]] || die "no such file $(dirname "$dir")/model.json: the model must be in the parent of $dir"
[[ -z $tuned_on ]] || need "$tuned_on/scoring_kaldi/best_wer"
kernelam score classes --device "$device" ${tuned_on:+--tuned-on "$tuned_on"} "$data" "$dir"
