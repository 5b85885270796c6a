#!/usr/bin/env bash
# TIMIT, from Kaldi's own recipe run until its speaker-adapted GMM: its fMLLR features, alignments and graph; a kernel
# model, a DNN; phone error rates on 39 classes.
# Usage: ./run_kaldi.sh --corpus <dir> [options]
# e.g.: ./run_kaldi.sh --corpus /kaldi/egs/timit/s5 --nj 4
# Without --stage, what is up to date is skipped; with it, everything from that stage on is done again.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/utils/options.sh"

stage=            # the first stage to run, even if its results are up to date
stop_stage=9      # the last stage to run
nj=2              # parallel jobs; results do not depend on it
corpus=           # the folder of the Kaldi experiment: data-fmllr-tri3, exp/tri3_ali, exp/tri3/graph, data/lang
device=cpu        # where models are trained: cpu or cuda
seed=1            # of the models

parse_options "$@"
usage 0
[[ -z $corpus ]] || corpus=$(place_of "$corpus")
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
. ./path.sh
. ./cmd.sh
. utils/stages.sh
[[ -n $corpus ]] || die "--corpus is needed: the folder of Kaldi's TIMIT recipe, as README.md describes it"
graph=$corpus/exp/tri3/graph
need "$corpus"/{exp/tri3_ali/final.mdl,data/lang/phones.txt} "$graph/HCLG.fst"
mapfile -t archives < <(cut -d' ' -f2 "$corpus"/data-fmllr-tri3/*/feats.scp | cut -d: -f1 | sort -u | sed "s|^[^/]|$corpus/&|")

if stage 0 "corpus: data directories, and heldout speakers"; then
    once --in="$corpus"/data-fmllr-tri3/{train,dev,test} --out=data/{train,heldout,dev,test} -- \
        local/timit/from_kaldi.sh "$corpus" data
fi

# Both models see the same inputs and choose from as many learning rates on the same frames.
train_model() {  # train_model SCRIPT DIR OPTIONS…
    local script=$1 dir=$2 ali=$corpus/exp/tri3_ali
    shift 2
    once --in=data/{train,heldout}/{feats.scp,utt2spk} "${archives[@]/#/--in=}" --in="$ali" \
        --out="$dir"/{model.safetensors,ali_train_pdf.counts,final.mdl,tree,phones.txt,model.json,epochs.jsonl} -- \
        "steps/$script" --cmd "$cuda_cmd" --device "$device" --seed "$seed" --splice 5 --schedule halving --metric erll \
        "$@" data/train data/heldout "$corpus/data/lang" "$ali" "$ali" "$dir"
}

if stage 5 "kernel model: Gaussian random Fourier features"; then
    train_model train_kernel.sh exp/kernel --num-features 5000 --bottleneck 100 --rates "1 2 4"
fi

if stage 6 "DNN: tanh units"; then
    train_model train_dnn.sh exp/dnn --layers 4 --width 1000 --rates "0.05 0.1 0.2"
fi

if stage 7 "decode: lattices of dev and test"; then
    for dir in exp/kernel exp/dnn; do
        for x in dev test; do
            decode_once $dir $x --acwt 0.2
        done
    done
fi

if stage 8 "score: 39 classes; weights tuned on dev, applied to test"; then
    mkdir -p data/local
    cut -f2,3 local/timit/phones.60-48-39.map | sort -u > data/local/phones.48-39.map
    for dir in exp/kernel exp/dnn; do
        score_once $dir dev test --min-lmwt 1 --max-lmwt 10 --units data/local/phones.48-39.map
    done
fi

if stage 9 "report"; then
    kernelam report --title "TIMIT" --baseline exp/dnn --output KALDI.md exp/kernel exp/dnn
    cat KALDI.md
fi
