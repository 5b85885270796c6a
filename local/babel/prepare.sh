#!/usr/bin/env bash
# Data directories and dictionary of a language pack of IARPA Babel.
# Usage: local/babel/prepare.sh --code <code> [options] <corpus> <data>
# --code 103 is the language in the names of files; --tones keep|drop|none of the lexicon's phones; --romanised true|false:
# the lexicon has a column for it; --pack limited|full, or the recordings that --train-list <file> names, to train on.
# --spelling none|missing|all: words that are pronounced letter by letter. --pieces <n>: sentencepiece units, not words.
# e.g.: local/babel/prepare.sh --code 101 --tones keep /corpora/IARPA_BABEL_BP_101 data
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

pass_on 2 "$@"
case " $* " in *" --pieces "[1-9]*) . "$root/path.sh" local/babel/requirements.txt ;; esac
become babel/babel_corpus.py "$@"
