#!/usr/bin/env bash
# Make a decoding graph from a lang directory with G.fst and a model directory with tree and final.mdl.
# Usage: utils/mkgraph.sh [options] <lang-dir> <model-dir> <graph-dir>
# e.g.: utils/mkgraph.sh data/lang_test exp/mono exp/mono/graph
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/script.sh"

self_loop_scale=0.1   # scale of the log-probabilities of self-loops
transition_scale=1.0  # scale of those of the other transitions

parse_options "$@"
usage 3
set -- "${args[@]}"
need "$1/L_disambig.fst" "$1/G.fst" "$1/phones.txt" "$1/words.txt" "$2/tree" "$2/final.mdl"

kernelam graph hclg --self-loop-scale "$self_loop_scale" --transition-scale "$transition_scale" "$1" "$2" "$3"
