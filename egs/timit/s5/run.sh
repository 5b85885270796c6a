#!/usr/bin/env bash
# TIMIT, from sound to phone error rates on 39 classes: GMMs, and the systems of the papers on their labels and features.
# Usage: ./run.sh --corpus <dir> [options]
# e.g.: ./run.sh --corpus /corpora/LDC93S1 --size papers --device cuda
# Without --stage, what is up to date is skipped; with it, everything from that stage on is done again.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/utils/options.sh"

stage=            # the first stage to run, even if its results are up to date
stop_stage=14     # the last stage to run
nj=2              # parallel jobs; results do not depend on it
corpus=           # the folder of LDC93S1, or its timit/TIMIT
size=laptop       # of all systems, as conf/<size>.sh has it: papers, laptop, or lookalike
units=48          # phones; 49: the glottal stop q is one, as in the 147 states of the papers
states=phones     # what models tell apart: three states of each phone, or context: those of the decision tree
frame_shift=10    # milliseconds; may2017 has 5
device=cpu        # where models are trained: cpu or cuda
seed=1            # of the models

parse_options "$@"
usage 0
[[ -z $corpus ]] || corpus=$(place_of "$corpus")
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
[[ -n $corpus ]] || die "--corpus is needed: the folder of LDC93S1; local/timit/make_lookalike.sh makes one to try this with"
[[ -e conf/$size.sh ]] || die "--size is papers, laptop or lookalike, not $size"
[[ $states == phones || $states == context ]] || die "--states is phones or context, not $states"
[[ $frame_shift == 5 || $frame_shift == 10 ]] || die "--frame-shift is 5 or 10, not $frame_shift"
. ./path.sh
. ./cmd.sh
. utils/stages.sh
# shellcheck source=conf/laptop.sh
. "conf/$size.sh"
# shellcheck disable=SC2034  # read by the stages
sets=data-fmllr archives=() mfcc_config=conf/mfcc.conf lmwts=(--min-lmwt 1 --max-lmwt 10)
[[ $frame_shift == 10 ]] || mfcc_config=conf/mfcc_5ms.conf lmwts=(--min-lmwt 2 --max-lmwt 20)

if stage 0 "corpus: data directories and dictionary"; then
    once --in="$corpus" --in=local/timit --out=data/local/dict \
        --out=data/{train,heldout,dev,test}/{wav.scp,text,utt2spk,spk2utt,phones.ctm} -- \
        local/timit/prepare.sh --units "$units" "$corpus" data
fi

if stage 1 "features: MFCC, and CMVN statistics of each speaker"; then
    for x in train heldout dev test; do mfcc_once $x "$corpus"; done
fi

if stage 2 "language: words are phones; a trigram of the training transcripts"; then
    language_once 3 sil --position-dependent-phones false --sil-prob 0 --num-sil-states 3
fi

if stage 3 "labels: GMMs of phones, of phones in context, with LDA and MLLT, and adapted to speakers"; then
    gmm_ladder "${gmms[@]}"
    for x in train heldout; do
        once --in=exp/tri3_ali_$x --in=data/lang --out=exp/tri3_ali_${x}_phones -- \
            utils/monophone_ali.sh data/lang exp/tri3_ali_$x exp/tri3_ali_${x}_phones
    done
fi

if stage 4 "graphs; features: adapted to each speaker, those of dev and test by decoding them"; then
    graph=exp/tri3/graph adapted_features --acwt 0.1 "${search[@]}"
    once --in=data/lang_test --in=exp/tri3_ali_train_phones/{final.mdl,tree} --out=exp/graph_phones -- \
        utils/mkgraph.sh data/lang_test exp/tri3_ali_train_phones exp/graph_phones
fi

# shellcheck disable=SC2034  # read by the stages
splice=5
# shellcheck disable=SC2034
if [[ $states == phones ]]; then graph=exp/graph_phones ali=_phones; else graph=exp/tri3/graph ali=; fi

papers 5 may2017 "may2017: random Fourier features, bottlenecks, feature selection"
papers 6 networks "the DNNs of may2017 and lu2014, and a stronger one"
papers 7 lu2014 "lu2014: SAG, blocks, sums, products and compositions of kernels"
papers 8 chen2016 "chen2016: ridge regression, one class against one"
papers 9 cho2009 "cho2009: arc-cosine kernels and multilayer kernel machines"
papers 10 kubo2012 "kubo2012: kernel gradient matching pursuit"

combine_once 11 exp/combination "${combined[@]}"

if stage 12 "decode: lattices of dev and test"; then
    for dir in "${models[@]}"; do
        for x in dev test; do decode_once "$dir" $x --acwt 0.2 "${search[@]}"; done
    done
fi

if stage 13 "score: 39 classes; weights tuned on dev, applied to test"; then
    mkdir -p data/local
    (cut -f2,3 local/timit/phones.60-48-39.map | awk 'NF == 2'; echo q) | sort -u > data/local/phones.map
    for dir in exp/tri3 "${models[@]}"; do score_once "$dir" dev test "${lmwts[@]}" --units data/local/phones.map; done
fi

if stage 14 "report"; then
    kernelam report --title "TIMIT" --corpus timit --baseline exp/tri3 --output RESULTS.md exp/tri3 "${models[@]}"
    cat RESULTS.md
fi
