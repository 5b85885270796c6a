#!/usr/bin/env bash
# Make a lang directory with a grammar: a copy of <lang> with G.fst from a language model in ARPA format.
# Usage: utils/format_lm.sh <lang> <arpa> [<lexicon>] <lang-test>
# The lexicon, which Kaldi's script of this name takes, is not needed.
# e.g.: utils/format_lm.sh data/lang data/local/lm/trigram.arpa.gz data/lang_test
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

parse_options "$@"
usage 3 4
set -- "${args[@]}"
lang=$1 arpa=$2 dir=${!#}

need "$lang/words.txt" "$lang/L_disambig.fst" "$arpa"
mkdir -p "$dir"
rm -f "$dir/G.fst"
cp -r "$lang/." "$dir"
kernelam lm fst "$arpa" "$lang/words.txt" "$dir/G.fst"
