#!/usr/bin/env bash
# Iban radio news, from sound to word error rates: GMMs, a kernel model, a DNN.
# Usage: ./run.sh --corpus <dir> [options]
# e.g.: ./run.sh --corpus /corpora/iban --nj 4
# Works in the folder sound; if <dir> is a Kaldi experiment with alignments of its own, run_kaldi.sh takes over. Without
# --stage, what is up to date is skipped; with it, everything from that stage on is done again.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/utils/options.sh"

stage=            # the first stage to run, even if its results are up to date
stop_stage=9      # the last stage to run
nj=2              # parallel jobs; results do not depend on it
corpus=           # the folder of the corpus (OpenSLR 24): data, lang and LM in it
download=false    # fetch it into that folder, unless it is there
size=laptop       # of all systems, as conf/<size>.sh has it: laptop or lookalike
device=cpu        # where models are trained: cpu or cuda
seed=1            # of the models

given=("$@")
parse_options "$@"
usage 0
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
[[ -n $corpus ]] || die "--corpus is needed: the folder of the Iban corpus, or with --download true one to fetch it into; local/iban/make_lookalike.sh makes one to try this with"
[[ ! -e $corpus/exp/gmm_ali_train ]] || exec "$here/run_kaldi.sh" "${given[@]}"
! $download || "$here/local/iban/download.sh" "$corpus"
corpus=$(place_of "$corpus")
cd "$here"
[[ -e conf/$size.sh ]] || die "--size is laptop or lookalike, not $size"
. ./path.sh
. ./cmd.sh
mkdir -p sound
for x in steps utils local conf; do ln -sfn "../$x" "sound/$x"; done
cd sound
. utils/stages.sh
# shellcheck source=conf/laptop.sh
. "conf/$size.sh"
# shellcheck disable=SC2034  # read by the stages
graph=exp/tri3/graph sets=data-fmllr archives=() pass=_first

if stage 0 "corpus: data directories and dictionary"; then
    once --in="$corpus" --in=local/iban --out=data/local/{dict,text} \
        --out=data/{train,heldout,dev,test}/{wav.scp,text,utt2spk,spk2utt} -- local/iban/prepare.sh "$corpus" data
fi

if stage 1 "features: MFCC, and CMVN statistics of each speaker"; then
    for x in train heldout dev test; do mfcc_once $x "$corpus"; done
fi

if stage 2 "language: a trigram of transcripts and newspapers, and what of it remains for the first pass"; then
    large_language_once 3 "<UNK>" "$threshold"
fi

if stage 3 "labels: GMMs of phones, of phones in context, with LDA and MLLT, and adapted to speakers"; then
    gmm_ladder "${gmms[@]}"
fi

if stage 4 "graph: HCLG; features: adapted to each speaker, those of dev and test by decoding them"; then
    adapted_features "${search[@]}"
fi

papers 5 kernels "kernel model: Gaussian random Fourier features of Fisher directions"
papers 6 networks "DNN: tanh units"

if stage 7 "decode: lattices of dev and test with the pruned language model"; then
    for dir in "${models[@]}"; do
        for x in dev test; do decode_once "$dir" $x --acwt 0.1 "${search[@]}"; done
    done
fi

if stage 8 "the whole language model in their lattices; scores, weights tuned on dev, applied to test"; then
    for dir in exp/tri3 "${models[@]}"; do
        for x in dev test; do rescore_once "$dir" $x data/lang_{test,full}; done
        score_once "$dir" dev test
    done
fi

if stage 9 "report"; then
    kernelam report --title "Iban radio news, from sound" --baseline exp/tri3 --output ../SOUND.md exp/tri3 "${models[@]}"
    cat ../SOUND.md
fi
