#!/usr/bin/env bash
# Write a part of a data directory to another: <num> utterances, spread evenly over the source unless an option says which.
# Usage: utils/subset_data_dir.sh [--speakers|--first|--last|--shortest|--per-spk] <src> <num> <dest>
#        utils/subset_data_dir.sh [--utt-list <file>|--spk-list <file>] <src> <dest>
# e.g.: utils/subset_data_dir.sh --shortest data/train 500 data/train_500short
# --speakers: whole speakers, drawn with a fixed seed, until there are <num> utterances
# --per-spk: up to <num> utterances of each speaker
# --shortest: by utt2num_frames, utt2dur or segments
# --utt-list, --spk-list: the utterances or speakers that a file lists, one a line
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/script.sh"

pass_on 2 "$@"
exec kernelam data subset "$@"
