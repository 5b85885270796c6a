#!/usr/bin/env bash
# Iban radio news with labels, graph and adapted features of our own: from the filterbanks, transcripts, lexicon and
# trigram of a Kaldi experiment, none of its alignments or models; GMMs, and kernel models on what they give.
# Usage: ./run_gmm.sh --corpus <dir> [options]
# e.g.: ./run_gmm.sh --corpus /corpora/kaldi-iban --nj 4
# Everything is made in own/. Without --stage, what is up to date is skipped; with it, everything from there on is done again.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/utils/options.sh"

stage=            # the first stage to run, even if its results are up to date
stop_stage=9      # the last stage to run
nj=2              # parallel jobs; results do not depend on it
corpus=           # the folder of the Kaldi experiment: data-fbank, data/local/dict, data/lang_test/lm.arpa.gz
device=cpu        # where kernel models are trained: cpu or cuda
seed=1            # of the models

parse_options "$@"
usage 0
[[ -z $corpus ]] || corpus=$(place_of "$corpus")
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
[[ -n $corpus ]] || die "--corpus is needed: the folder of a Kaldi experiment on Iban, as README.md describes it"
need "$corpus"/data-fbank/{train,heldout,dev}/feats.scp "$corpus/data/local/dict/lexicon.txt" "$corpus/data/lang_test/lm.arpa.gz"
. ./path.sh
. ./cmd.sh
. utils/stages.sh
mkdir -p own
for x in steps utils local conf; do ln -sfn "../$x" "own/$x"; done
cd own
# shellcheck disable=SC2034  # read by the stages
graph=exp/tri3/graph decoded="heldout dev" archives=("$corpus/fbank")

if stage 0 "corpus: data directories of filterbanks"; then
    for x in train heldout dev; do
        once --in="$corpus/data-fbank/$x" --out=data-fbank/$x -- \
            utils/import_data_dir.sh "$corpus" "$corpus/data-fbank/$x" data-fbank/$x
    done
fi

if stage 1 "features: cepstra of the filterbanks, and CMVN statistics of each speaker"; then
    for x in train heldout dev; do
        once --in=data-fbank/$x --in="$corpus/fbank" --out=data/$x -- \
            steps/make_cepstra.sh --cmd "$train_cmd" data-fbank/$x data/$x
    done
fi

if stage 2 "language: lexicon, and the trigram of the experiment"; then
    once --in="$corpus/data/local/dict" --out=data/lang -- \
        utils/prepare_lang.sh "$corpus/data/local/dict" "<UNK>" data/local/lang data/lang
    once --in=data/lang --in="$corpus/data/lang_test/lm.arpa.gz" --out=data/lang_test -- \
        utils/format_lm.sh data/lang "$corpus/data/lang_test/lm.arpa.gz" data/lang_test
fi

if stage 3 "labels: GMMs of phones, of phones in context, with LDA and MLLT, and adapted to speakers"; then
    gmm_ladder 1000 1250 15000
fi

if stage 4 "graph: HCLG; features: adapted to each speaker, those of heldout and dev by decoding them"; then
    adapted_features --beam 13 --lattice-beam 6
    once --in=data/lang_test --in=exp/tri2/{final.mdl,tree,phones.txt} --out=exp/tri2/graph -- \
        utils/mkgraph.sh data/lang_test exp/tri2 exp/tri2/graph
fi

# Kernel models as run.sh trains them, by our labels: of the filterbanks, and of the adapted features.
train_model() {  # train_model SETS DIR OPTIONS…
    local sets=$1 dir=$2
    shift 2
    once --in="$sets"/{train,heldout} --in="$corpus/fbank" --in=data/lang --in=exp/tri3_ali_{train,heldout} \
        --out="$dir"/{model.safetensors,ali_train_pdf.counts,final.mdl,tree,phones.txt,model.json,epochs.jsonl} -- \
        steps/train_kernel.sh --cmd "$cuda_cmd" --device "$device" --seed "$seed" --splice 5 --search-frames 200000 \
        --kernel "gaussian o fda:120" --bandwidth 1 --num-features 5000 --bottleneck 256 --precondition 32 \
        --rates "8 16 32" --max-epochs 2 "$@" "$sets/train" "$sets/heldout" data/lang exp/tri3_ali_{train,heldout} "$dir"
}

if stage 5 "kernel model: of the filterbanks"; then
    train_model data-fbank exp/kernel_fbank --cmvn-opts "--norm-means=true --norm-vars=true"
fi

if stage 6 "kernel model: of the adapted features"; then
    train_model data-fmllr exp/kernel_fmllr
fi

if stage 7 "decode: lattices of heldout and dev"; then
    for x in heldout dev; do
        graph=exp/tri2/graph decode_once exp/tri2 $x --beam 13 --lattice-beam 6
        sets=data-fbank decode_once exp/kernel_fbank $x --acwt 0.1 --beam 13 --lattice-beam 6
        sets=data-fmllr decode_once exp/kernel_fmllr $x --acwt 0.1 --beam 13 --lattice-beam 6
    done
fi

models=(exp/tri2 exp/tri3 exp/kernel_fbank exp/kernel_fmllr)
if stage 8 "score: weights tuned on heldout, applied to dev"; then
    for dir in "${models[@]}"; do score_once "$dir" heldout dev; done
fi

if stage 9 "report"; then
    kernelam report --title "Iban radio news: labels of our own" --tuned heldout --tested dev --baseline exp/tri3 \
        --output ../GMM.md "${models[@]}"
    cat ../GMM.md
fi
