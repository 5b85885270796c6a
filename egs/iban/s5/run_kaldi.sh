#!/usr/bin/env bash
# Iban radio news, from an existing Kaldi experiment: its filterbanks, alignments and trigram graph; a kernel model, a DNN.
# Usage: ./run_kaldi.sh --corpus <dir> [options]
# e.g.: ./run_kaldi.sh --corpus /corpora/kaldi-iban --nj 4
# Without --stage, what is up to date is skipped; with it, everything from that stage on is done again.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/utils/options.sh"

stage=            # the first stage to run, even if its results are up to date
stop_stage=9      # the last stage to run
nj=2              # parallel jobs; results do not depend on it
corpus=           # the folder of the Kaldi experiment: data-fbank, exp/gmm_ali_*, exp/gmm/graph, data/lang_test
device=cpu        # where models are trained: cpu or cuda
seed=1            # of the models

parse_options "$@"
usage 0
[[ -z $corpus ]] || corpus=$(place_of "$corpus")
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
. ./path.sh
. ./cmd.sh
. utils/stages.sh
[[ -n $corpus ]] || die "--corpus is needed: the folder of a Kaldi experiment on Iban, as README.md describes it"
need "$corpus"/exp/gmm_ali_{train,heldout}/final.mdl "$corpus/data/lang_test/phones.txt"
graph=exp/graph archives=("$corpus/fbank")

if stage 0 "corpus: data directories and the graph"; then
    once --in="$corpus"/data-fbank/{train,heldout,dev} --in="$corpus/exp/gmm/graph" --out="$graph" \
        --out=data/{train,heldout,dev}/{feats.scp,cmvn.scp,utt2spk,spk2utt,text} -- \
        local/iban/from_kaldi.sh "$corpus" data "$graph"
fi

# Both models see the same inputs and choose from as many learning rates on as many frames.
train_model() {  # train_model SCRIPT DIR OPTIONS…
    local script=$1 dir=$2 ali=$corpus/exp/gmm_ali
    shift 2
    once --in=data/{train,heldout}/{feats.scp,cmvn.scp,utt2spk} --in="$corpus/fbank" --in="${ali}_"{train,heldout} \
        --out="$dir"/{model.safetensors,ali_train_pdf.counts,final.mdl,tree,phones.txt,model.json,epochs.jsonl} -- \
        "steps/$script" --cmd "$cuda_cmd" --device "$device" --seed "$seed" \
        --cmvn-opts "--norm-means=true --norm-vars=true" --splice 5 --search-frames 200000 "$@" \
        data/train data/heldout "$corpus/data/lang_test" "${ali}_train" "${ali}_heldout" "$dir"
}

if stage 5 "kernel model: Gaussian random Fourier features of Fisher directions"; then
    train_model train_kernel.sh exp/kernel --kernel "gaussian o fda:120" --bandwidth 1 --num-features 5000 \
        --bottleneck 256 --precondition 32 --rates "8 16 32" --max-epochs 2
fi

if stage 6 "DNN: tanh units"; then
    train_model train_dnn.sh exp/dnn --layers 3 --width 512 --pretraining none --rates "0.1 0.2 0.4"
fi

if stage 7 "decode: lattices of heldout and dev"; then
    for dir in exp/kernel exp/dnn; do
        for x in heldout dev; do
            decode_once $dir $x --acwt 0.1 --beam 13 --lattice-beam 6
        done
    done
fi

if stage 8 "score: weights tuned on heldout, applied to dev"; then
    for dir in exp/kernel exp/dnn; do
        score_once $dir heldout dev
    done
fi

if stage 9 "report"; then
    kernelam report --title "Iban radio news" --tuned heldout --tested dev --baseline exp/dnn --output RESULTS.md \
        exp/kernel exp/dnn
    cat RESULTS.md
fi
