#!/usr/bin/env bash
# Data directories and a graph from an existing Kaldi experiment on Iban, whose paths are relative to its folder.
# Usage: local/iban/from_kaldi.sh <corpus> <data> <graph>
# e.g.: local/iban/from_kaldi.sh /corpora/kaldi-iban data exp/graph
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

parse_options "$@"
usage 3
set -- "${args[@]}"
[[ -d $1 ]] || die "no such directory $1"
corpus=$(readlink -f "$1") data=$2 graph=$3 source=$corpus/exp/gmm/graph
export corpus

[[ ! $graph -ef $source ]] || die "$graph is the experiment's own graph"
hclg=$source/HCLG.fst
[[ -e $hclg ]] || hclg=$hclg.gz
need "$hclg" "$corpus"/data-fbank/{train,heldout,dev}/{feats.scp,cmvn.scp,utt2spk,spk2utt,text}

for x in train heldout dev; do
    mkdir -p "$data/$x"
    cp "$corpus/data-fbank/$x"/{utt2spk,spk2utt,text} "$data/$x"
    for table in feats.scp cmvn.scp; do
        awk '{ if ($2 !~ "^/") $2 = ENVIRON["corpus"] "/" $2; print }' "$corpus/data-fbank/$x/$table" > "$data/$x/$table"
    done
    kernelam validate --no-wav "$data/$x"
done

rm -rf "$graph"
mkdir -p "$graph"
cp -r "$source"/{words.txt,phones.txt,num_pdfs,phones} "$graph"
gzip -cdf "$hclg" > "$graph/HCLG.fst"
