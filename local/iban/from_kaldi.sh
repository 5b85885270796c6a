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

[[ ! $graph -ef $source ]] || die "$graph is the experiment's own graph; name another directory"
hclg=$source/HCLG.fst
[[ -e $hclg ]] || hclg=$hclg.gz
need "$hclg" "$corpus"/data-fbank/{train,heldout,dev}/{feats.scp,cmvn.scp,utt2spk,spk2utt,text}

for x in train heldout dev; do
    "$root/utils/import_data_dir.sh" "$corpus" "$corpus/data-fbank/$x" "$data/$x"
done

rm -rf "$graph"
mkdir -p "$graph"
cp -r "$source"/{words.txt,phones.txt,num_pdfs,phones} "$graph"
gzip -cdf "$hclg" > "$graph/HCLG.fst"
