#!/usr/bin/env bash
# Copy a data directory of features whose tables have paths relative to the folder of an experiment, making them absolute.
# Usage: utils/import_data_dir.sh <experiment> <data> <dest>
# e.g.: utils/import_data_dir.sh /kaldi/egs/timit/s5 /kaldi/egs/timit/s5/data-fmllr-tri3/train data/train
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/script.sh"

parse_options "$@"
usage 3
[[ -d ${args[0]} ]] || die "no such directory ${args[0]}"
experiment=$(readlink -f "${args[0]}") source=${args[1]} dest=${args[2]}
export experiment
need "$source"/{feats.scp,utt2spk,spk2utt,text}
[[ ! $source -ef $dest ]] || die "$dest is the experiment's own data directory; name another one"

mkdir -p "$dest"
cp "$source"/{utt2spk,spk2utt,text} "$dest"
for table in feats.scp cmvn.scp; do
    rm -f "$dest/$table"
    [[ ! -e $source/$table ]] \
        || awk '{ if ($2 !~ "^/") $2 = ENVIRON["experiment"] "/" $2; print }' < "$source/$table" > "$dest/$table"
done
kernelam validate --no-wav "$dest"
