#!/usr/bin/env bash
# Transcribe sound files: write their words, or each word with its time and confidence.
# Usage: steps/transcribe.sh [options] <model-dir> <graph> <sound-file> …
# Features are made as the model's file feature_opts says, which the training steps write. Each file counts as a speaker of
# its own. If the model takes adapted features, the GMM that adapts them is used too, with the graph in its directory.
# e.g.: steps/transcribe.sh --tuned-on exp/kernel/decode_dev exp/kernel exp/tri3/graph talk.wav
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

cmd=run_local.sh                # where jobs run
nj=1                            # how many
device=cpu                      # cpu or cuda
acwt=0.1                        # acoustic scale of the search
beam=13                         # of the search
lattice_beam=8                  # of the lattices
max_active=7000                 # tokens followed at most
lmwt=10                         # LM weight of the words
word_ins_penalty=0.0            # and penalty of each
tuned_on=                       # a scored decode directory whose weights are used instead
times=false                     # lines `file 1 begin duration word confidence` instead of `file words`

parse_options "$@"
set -- "${args[@]}"
args=("${@:1:3}")  # as many files as there are
usage 3
model=$1 graph=$2
shift 2

need "$model/final.mdl" "$graph/HCLG.fst" "$graph/words.txt" "$@"
[[ -e $model/feature_opts ]] || die "no such file $model/feature_opts: how to make the features of $model from sound is not known; retrain it on features that steps/make_mfcc.sh or make_fbank.sh made"
[[ -z $tuned_on ]] || need "$tuned_on/scoring_kaldi/best_wer"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quiet() { "$@" 2> "$work/log" || { cat "$work/log" >&2; die "$1 failed"; }; }

mapfile -t made < "$model/feature_opts"
read -r kind options <<< "${made[0]}"
read -r adapted gmm <<< "${made[1]:-}"
tr ' ' '\n' <<< "$options" > "$work/$kind.conf"
data=$work/data
mkdir "$data"
for file in "$@"; do
    name=$(basename "$file")
    name=${name// /_} name=${name%.*}
    while grep -q "^$name " "$data/utt2spk" 2> /dev/null; do name+=+; done
    echo "$name $(readlink -f "$file")" >> "$data/wav.scp"
    echo "$name $name" >> "$data/utt2spk"
done
LC_ALL=C sort -o "$data/wav.scp" "$data/wav.scp"
LC_ALL=C sort -o "$data/utt2spk" "$data/utt2spk"
cp "$data/utt2spk" "$data/spk2utt"
quiet "$root/steps/make_$kind.sh" --cmd "$cmd" --nj "$nj" --resample true --"${kind}"-config "$work/$kind.conf" "$data"
warnings "$data"/log/make_*.log
quiet "$root/steps/compute_cmvn_stats.sh" --cmd "$cmd" "$data"
if [[ $adapted == fmllr ]]; then
    need "$gmm/final.mdl" "$gmm/graph/HCLG.fst"
    mkdir "$work/gmm"
    ln -s "$(readlink -f "$gmm")"/* "$work/gmm"
    quiet "$root/steps/decode_fmllr.sh" --cmd "$cmd" --nj "$nj" --skip-scoring true "$gmm/graph" "$data" "$work/gmm/adapted"
    quiet "$root/steps/make_fmllr_feats.sh" --cmd "$cmd" --transform-dir "$work/gmm/adapted" "$work/adapted" "$data" "$gmm"
    data=$work/adapted
fi
quiet kernelam decode --acwt "$acwt" --beam "$beam" --lattice-beam "$lattice_beam" --max-active "$max_active" \
    --device "$device" "$graph" "$model" "$data" "$work/lat.gz"
quiet kernelam lattice ctm --lmwt "$lmwt" --word-ins-penalty "$word_ins_penalty" ${tuned_on:+--tuned-on "$tuned_on"} --words "$graph/words.txt" \
    --frame-shift "$(< "$data/frame_shift")" --output "$work/ctm" "$model" "$graph" "$work/lat.gz"
if $times; then
    cat "$work/ctm"
else
    awk 'NR == FNR { words[$1] = words[$1] " " $5; next } { print $1 words[$1] }' "$work/ctm" "$data/utt2spk"
fi
