#!/usr/bin/env bash
# The Free Spoken Digit Dataset, from sound to word error rates: GMMs, a kernel model, a DNN.
# Usage: ./run.sh --corpus <dir> [options]
# e.g.: ./run.sh --corpus /corpora/fsdd
# Without --stage, what is up to date is skipped; with it, everything from that stage on is done again.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/utils/options.sh"

stage=            # the first stage to run, even if its results are up to date
stop_stage=9      # the last stage to run
nj=2              # parallel jobs; results do not depend on it
corpus=           # the folder of the dataset: 0_george_0.wav, … in it or in its recordings
test_speaker=     # train on the others and test on this one, in speakers/<name>; otherwise all are in all sets
device=cpu        # where models are trained: cpu or cuda
seed=1            # of the models

parse_options "$@"
usage 0
[[ -z $corpus ]] || corpus=$(place_of "$corpus")
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
[[ -n $corpus ]] || die "--corpus is needed: the folder of the Free Spoken Digit Dataset"
. ./path.sh
. ./cmd.sh
. utils/stages.sh
if [[ -n $test_speaker ]]; then
    mkdir -p "speakers/$test_speaker"
    for x in steps utils local conf; do ln -sfn "../../$x" "speakers/$test_speaker/$x"; done
    cd "speakers/$test_speaker"
fi
# shellcheck disable=SC2034  # read by the stages
graph=exp/tri3/graph sets=data-fmllr archives=()

if stage 0 "corpus: data directories and dictionary"; then
    once --in=local/fsdd --in="$corpus" --out=data/local/dict --out=data/{train,heldout,dev,test}/{wav.scp,text,utt2spk,spk2utt} -- \
        local/fsdd/prepare.sh ${test_speaker:+--test-speaker "$test_speaker"} "$corpus" data
fi

if stage 1 "features: MFCC, and CMVN statistics of each speaker"; then
    for x in train heldout dev test; do mfcc_once $x "$corpus"; done
fi

if stage 2 "language: lexicon, and a bigram of the training transcripts, which are single words"; then
    language_once 2 "<UNK>"
fi

if stage 3 "labels: GMMs of phones, of phones in context, with LDA and MLLT, and adapted to speakers"; then
    gmm_ladder 400 150 1500
fi

if stage 4 "graph: HCLG; features: adapted to each speaker, those of dev and test by decoding them"; then
    adapted_features --acwt 0.1
fi

train_model() {  # train_model SCRIPT DIR OPTIONS…
    local script=$1 dir=$2
    shift 2
    once --in=data-fmllr/{train,heldout} --in=data/lang --in=exp/tri3_ali_{train,heldout} \
        --out="$dir"/{model.safetensors,ali_train_pdf.counts,final.mdl,tree,phones.txt,model.json,epochs.jsonl} -- \
        "steps/$script" --cmd "$cuda_cmd" --device "$device" --seed "$seed" --splice 5 --search-frames 50000 "$@" \
        data-fmllr/train data-fmllr/heldout data/lang exp/tri3_ali_train exp/tri3_ali_heldout "$dir"
}

if stage 5 "kernel model: Gaussian random Fourier features"; then
    train_model train_kernel.sh exp/kernel --num-features 4000 --bandwidth 0.8 --bottleneck 64 --precondition 32 --rates "8 16 32"
fi

if stage 6 "DNN: tanh units"; then
    train_model train_dnn.sh exp/dnn --layers 3 --width 512 --pretraining none --rates "0.1 0.2 0.4"
fi

if stage 7 "decode: lattices of dev and test"; then
    for dir in exp/kernel exp/dnn; do
        for x in dev test; do decode_once $dir $x --acwt 0.2; done
    done
fi

if stage 8 "score: weights tuned on dev, applied to test"; then
    for dir in exp/tri3 exp/kernel exp/dnn; do score_once $dir dev test; done
fi

if stage 9 "report"; then
    kernelam report --title "Spoken digits${test_speaker:+: $test_speaker}" --baseline exp/tri3 --output RESULTS.md \
        exp/tri3 exp/kernel exp/dnn
    cat RESULTS.md
fi
