#!/usr/bin/env bash
# Write alignments of any tree as those of monophones, with tree and transition model: labels for models of few classes,
# and what utils/mkgraph.sh makes a graph of for them.
# Usage: utils/monophone_ali.sh <lang> <ali> <out>
# e.g.: utils/monophone_ali.sh data/lang exp/tri3_ali exp/tri3_ali_mono
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/script.sh"

pass_on 3 "$@"
exec kernelam labels monophones "$@"
