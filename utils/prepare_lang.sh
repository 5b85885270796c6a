#!/usr/bin/env bash
# Make a lang directory (symbols, phone sets, topology, L.fst, L_disambig.fst) from a dictionary directory.
# Usage: utils/prepare_lang.sh [options] <dict-dir> <oov-word> <tmp-dir> <lang-dir>
# e.g.: utils/prepare_lang.sh data/local/dict '<UNK>' data/local/lang data/lang
# <tmp-dir> is there for Kaldi's order of arguments; nothing is written to it.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/script.sh"

position_dependent_phones=true  # mark phones by their place in the word
sil_prob=0.5                    # probability of silence between words; 0 for none
num_sil_states=5                # HMM states of silence phones
num_nonsil_states=3             # HMM states of the other phones
share_silence_phones=false      # all silence phones share their pdfs

parse_options "$@"
usage 4
set -- "${args[@]}"

kernelam graph lang --position-dependent-phones "$position_dependent_phones" --sil-prob "$sil_prob" \
    --num-sil-states "$num_sil_states" --num-nonsil-states "$num_nonsil_states" \
    --share-silence-phones "$share_silence_phones" "$1" "$2" "$4"
