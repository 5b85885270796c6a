#!/usr/bin/env bash
# A language pack of IARPA Babel, from sound to word or character error rates: GMMs, kernel models, DNNs, a combination.
# Usage: ./run.sh --corpus <dir> --language <name> [options]
# e.g.: ./run.sh --corpus /corpora/IARPA_BABEL_BP_101 --language cantonese --size papers --device cuda
# Works in the folder of the language's name. Without --stage, what is up to date is skipped; with it, everything from that
# stage on is done again.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/utils/options.sh"

stage=            # the first stage to run, even if its results are up to date
stop_stage=10     # the last stage to run
nj=2              # parallel jobs; results do not depend on it
corpus=           # the folder of the language pack
language=bengali  # as conf/<language>.sh has it: bengali or cantonese
size=laptop       # of all systems, as conf/<size>.sh has it: papers, laptop, or lookalike
pack=limited      # what to train on: the limited pack, or the full one
train_list=       # a file of the names of recordings to train on, where a limited pack has no folder of its own
tones=            # of the phones: keep or drop; as conf/<language>.sh has it unless given
spelling=none     # words that are pronounced letter by letter: none, missing (those that the lexicon lacks), or all
pieces=0          # so many sentencepiece units instead of words, of which any word can be put together
device=cpu        # where models are trained: cpu or cuda
seed=1            # of the models

parse_options "$@"
usage 0
[[ -z $corpus ]] || corpus=$(place_of "$corpus")
[[ -z $train_list ]] || { need "$train_list"; train_list=$(readlink -f "$train_list"); }
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
[[ -n $corpus ]] || die "--corpus is needed: the folder of a language pack; local/babel/make_lookalike.sh makes one to try this with"
[[ $language == bengali || $language == cantonese ]] || die "--language is bengali or cantonese, not $language"
[[ -e conf/$size.sh ]] || die "--size is papers, laptop or lookalike, not $size"
[[ $pieces =~ ^[0-9]+$ ]] || die "--pieces is a number of units, not $pieces"
. ./path.sh
. ./cmd.sh
# shellcheck source=conf/bengali.sh
. "conf/$language.sh"
mkdir -p "$language"
for x in steps utils local conf; do ln -sfn "../$x" "$language/$x"; done
cd "$language"
. utils/stages.sh
# shellcheck source=conf/laptop.sh
. "conf/$size.sh"
# shellcheck disable=SC2034  # read by the stages
graph=exp/tri3/graph sets=data-fmllr archives=() splice=4 mfcc_opts=(--resample true) search=(--acwt 0.1 "${beams[@]}")
if ((pieces)); then order=4 scored=joined,$scored; fi

if stage 0 "corpus: data directories and dictionary"; then
    once --in="$corpus" --in=local/babel ${train_list:+--in="$train_list"} --out=data/local/dict \
        --out=data/{train,heldout,dev,test}/{wav.scp,segments,reco2file_and_channel,text,utt2spk,spk2utt} -- \
        local/babel/prepare.sh --code "$code" --tones "${tones:-$has_tones}" --pack "$pack" \
        ${train_list:+--train-list "$train_list"} --spelling "$spelling" --pieces "$pieces" "$corpus" data
fi

if stage 1 "features: MFCC of 8 kHz, and CMVN statistics of each speaker"; then
    for x in train heldout dev test; do mfcc_once $x "$corpus"; done
fi

if stage 2 "language: lexicon, and an n-gram of the training transcripts"; then
    language_once "$order" "<unk>"
fi

if stage 3 "labels: GMMs of phones, of phones in context, with LDA and MLLT, and adapted to speakers"; then
    gmm_ladder "${gmms[@]}"
fi

if stage 4 "graph: HCLG; features: adapted to each speaker, those of dev and test by decoding them"; then
    adapted_features "${search[@]}"
fi

papers 5 may2017 "may2017: random Fourier features, bottlenecks, feature selection"
papers 6 networks "the DNNs of may2017 and lu2014"

combine_once 7 exp/combination "${combined[@]}"

if stage 8 "decode: lattices of dev and test"; then
    for dir in "${models[@]}"; do
        for x in dev test; do decode_once "$dir" $x "${search[@]}"; done
    done
fi

if stage 9 "score: hesitations, noises and unknown words left out; weights tuned on dev, applied to test"; then
    for dir in exp/tri3 "${models[@]}"; do score_once "$dir" dev test --units "$scored"; done
fi

if stage 10 "report"; then
    published=()  # figures of the same sets: the limited pack, all of dev, and eval
    if [[ $pack == limited ]] && grep -q /conversational/eval/ data/test/wav.scp; then published=(--corpus "$language"); fi
    kernelam report --title "Babel: $language" "${published[@]}" --baseline exp/tri3 --output RESULTS.md exp/tri3 "${models[@]}"
    cat RESULTS.md
fi
