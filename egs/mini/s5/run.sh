#!/usr/bin/env bash
# From sound to word error rates on a fresh machine: a synthetic corpus, GMMs, a kernel model, a DNN.
# Usage: ./run.sh [options]
# e.g.: ./run.sh --nj 4
# Without --stage, what is up to date is skipped; with it, everything from that stage on is done again.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/utils/options.sh"

stage=            # the first stage to run, even if its results are up to date
stop_stage=9      # the last stage to run
nj=2              # parallel jobs; results do not depend on it
corpus=corpus     # where the synthetic speech is made
device=cpu        # where models are trained: cpu or cuda
seed=1            # of the models

parse_options "$@"
usage 0
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
. ./path.sh
. ./cmd.sh
. utils/stages.sh
graph=exp/tri3/graph sets=data-fmllr archives=()

if stage 0 "corpus: 83 minutes of synthetic speech"; then
    once --in=local/mini --out="$corpus" --out=data/local/dict \
        --out=data/{train,heldout,dev,test}/{wav.scp,text,utt2spk,spk2utt,spk2gender} -- \
        local/mini/prepare.sh --nj "$nj" --cmd "$train_cmd" "$corpus" data
fi

if stage 1 "features: MFCC, and CMVN statistics of each speaker"; then
    for x in train heldout dev test; do mfcc_once $x "$corpus/$x"; done
fi

if stage 2 "language: lexicon, and a trigram of the training transcripts"; then
    language_once 3 "<UNK>"
fi

if stage 3 "labels: GMMs of phones, of phones in context, with LDA and MLLT, and adapted to speakers"; then
    gmm_ladder 1000 500 4000
fi

if stage 4 "graph: HCLG; features: adapted to each speaker, those of dev and test by decoding them"; then
    adapted_features --acwt 0.1 --beam 11 --lattice-beam 5 --max-active 3000
fi

# Both models see the same inputs, choose from as many learning rates on as many frames, and train for as many epochs.
train_model() {  # train_model SCRIPT DIR OPTIONS…
    local script=$1 dir=$2
    shift 2
    once --in=data-fmllr/{train,heldout} --in=data/lang --in=exp/tri3_ali_{train,heldout} \
        --out="$dir"/{model.safetensors,ali_train_pdf.counts,final.mdl,tree,phones.txt,model.json,epochs.jsonl} -- \
        "steps/$script" --cmd "$cuda_cmd" --device "$device" --seed "$seed" \
        --splice 5 --search-frames 50000 --max-epochs 4 "$@" \
        data-fmllr/train data-fmllr/heldout data/lang exp/tri3_ali_train exp/tri3_ali_heldout "$dir"
}

if stage 5 "kernel model: Gaussian random Fourier features"; then
    train_model train_kernel.sh exp/kernel --num-features 5000 --bandwidth 0.8 --bottleneck 100 \
        --precondition 32 --rates "8 16 32"
fi

if stage 6 "DNN: tanh units"; then
    train_model train_dnn.sh exp/dnn --layers 3 --width 512 --pretraining none --rates "0.2 0.4 0.8"
fi

if stage 7 "decode: lattices of dev and test"; then
    for dir in exp/kernel exp/dnn; do
        for x in dev test; do
            decode_once $dir $x --acwt 0.2 --beam 11 --lattice-beam 5 --max-active 3000
        done
    done
fi

if stage 8 "score: weights tuned on dev, applied to test"; then
    for dir in exp/tri3 exp/kernel exp/dnn; do
        score_once $dir dev test --min-lmwt 2
    done
fi

if stage 9 "report"; then
    kernelam report --title "mini: synthetic speech" --baseline exp/tri3 --output RESULTS.md exp/tri3 exp/kernel exp/dnn
    cat RESULTS.md
fi
