#!/usr/bin/env bash
# Data directories from Kaldi's own TIMIT recipe, run until its speaker-adapted GMM: the fMLLR features of its three sets,
# an eighth of the training speakers set apart as heldout.
# Usage: local/timit/from_kaldi.sh <corpus> <data>
# e.g.: local/timit/from_kaldi.sh /kaldi/egs/timit/s5 data
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

parse_options "$@"
usage 2
corpus=${args[0]} data=${args[1]}
[[ -d $corpus ]] || die "no such directory $corpus"
need "$corpus"/data-fmllr-tri3/{train,dev,test}/{feats.scp,utt2spk,spk2utt,text}

"$root/utils/import_data_dir.sh" "$corpus" "$corpus/data-fmllr-tri3/train" "$data/train_all"
for x in dev test; do
    "$root/utils/import_data_dir.sh" "$corpus" "$corpus/data-fmllr-tri3/$x" "$data/$x"
done
count=$(wc -l < "$data/train_all/utt2spk")
"$root/utils/subset_data_dir.sh" --speakers "$data/train_all" $(((count + 7) / 8)) "$data/heldout"
others=$(mktemp)
trap 'rm -f "$others"' EXIT
awk 'NR == FNR { heldout[$1]; next } !($1 in heldout)' "$data/heldout/spk2utt" "$data/train_all/spk2utt" > "$others"
"$root/utils/subset_data_dir.sh" --spk-list "$others" "$data/train_all" "$data/train"
