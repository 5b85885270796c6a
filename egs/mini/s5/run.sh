#!/usr/bin/env bash
# From sound to word error rates on a fresh machine: a synthetic corpus, GMMs, a kernel model, a DNN.
# Usage: ./run.sh [options]
# e.g.: ./run.sh --nj 4
# Without --stage, what is current is skipped; with it, everything from that stage on is done again.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/utils/options.sh"

stage=            # the first stage to run, whether or not its results are current
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
    for x in train heldout dev test; do
        features=data/$x/data/raw_mfcc_$x.ark
        once --in=data/$x/{wav.scp,utt2spk} --in="$corpus/$x" --in=conf/mfcc.conf \
            --out=data/$x/{feats.scp,utt2num_frames,utt2dur,frame_shift} --out="$features" -- \
            steps/make_mfcc.sh --nj "$nj" --cmd "$train_cmd" data/$x
        once --in=data/$x/{feats.scp,utt2spk} --in="$features" --out=data/$x/cmvn.scp --out=data/$x/data/cmvn_$x.ark -- \
            steps/compute_cmvn_stats.sh --cmd "$train_cmd" data/$x
    done
fi

if stage 2 "language: lexicon, and a trigram of the training transcripts"; then
    lm=data/local/lm/trigram.arpa.gz
    once --in=data/local/dict --out=data/lang -- utils/prepare_lang.sh data/local/dict "<UNK>" data/local/lang data/lang
    once --in=data/train/text --in=data/lang/words.txt --out="$lm" -- \
        kernelam lm estimate --order 3 --vocab data/lang/words.txt data/train/text "$lm"
    once --in=data/lang --in="$lm" --out=data/lang_test -- utils/format_lm.sh data/lang "$lm" data/lang_test
fi

# A GMM and what its features are made by; alignments by it are what the next one is trained on.
gmm() {  # gmm DIR: --in=FILE of each of its files
    printf -- '--in=%s\n' "$1"/{final.mdl,tree,phones.txt,cmvn_opts}
    local file
    for file in "$1"/{delta_opts,splice_opts,final.mat,final.alimdl}; do [[ ! -e $file ]] || echo "--in=$file"; done
}
train_gmm() {  # train_gmm SCRIPT DIR ALI ARGUMENTS…: the model DIR, by the alignments ALI if there are any
    local script=$1 dir=$2 ali=$3
    shift 3
    once --in=data/train/{feats.scp,cmvn.scp,utt2spk,text,data} --in=data/lang ${ali:+--in="$ali"} \
        --out="$dir"/{final.mdl,tree,phones.txt,cmvn_opts,model.json} -- \
        "steps/$script" --nj "$nj" --cmd "$train_cmd" --seed "$seed" "$@" data/train data/lang ${ali:+"$ali"} "$dir"
}
align() {  # align SCRIPT SET DIR ALI
    local made
    mapfile -t made < <(gmm "$3")
    once --in=data/"$2"/{feats.scp,cmvn.scp,utt2spk,text,data} --in=data/lang "${made[@]}" --out="$4" -- \
        "steps/$1" --nj "$nj" --cmd "$train_cmd" "data/$2" data/lang "$3" "$4"
}

if stage 3 "labels: GMMs of phones, of phones in context, with LDA and MLLT, and adapted to speakers"; then
    train_gmm train_mono.sh exp/mono ""
    align align_si.sh train exp/mono exp/mono_ali_train
    train_gmm train_deltas.sh exp/tri1 exp/mono_ali_train 500 4000
    align align_si.sh train exp/tri1 exp/tri1_ali
    train_gmm train_lda_mllt.sh exp/tri2 exp/tri1_ali 500 4000
    align align_si.sh train exp/tri2 exp/tri2_ali
    train_gmm train_sat.sh exp/tri3 exp/tri2_ali 500 4000
    for x in train heldout; do
        align align_fmllr.sh $x exp/tri3 exp/tri3_ali_$x
    done
fi

if stage 4 "graph: HCLG; features: adapted to each speaker, those of dev and test in two passes of decoding"; then
    once --in=data/lang_test --in=exp/tri3/{final.mdl,tree,phones.txt} --out="$graph" -- \
        utils/mkgraph.sh data/lang_test exp/tri3 "$graph"
    mapfile -t made < <(gmm exp/tri3)
    for x in dev test; do
        once --in=data/$x/{feats.scp,cmvn.scp,utt2spk,data} "${made[@]}" --in="$graph" --out=exp/tri3/decode_$x -- \
            steps/decode_fmllr.sh --nj "$nj" --cmd "$decode_cmd" --skip-scoring true --acwt 0.1 --beam 11 \
            --lattice-beam 5 --max-active 3000 "$graph" data/$x exp/tri3/decode_$x
    done
    for x in train heldout dev test; do
        transforms=exp/tri3_ali_$x
        [[ -e $transforms ]] || transforms=exp/tri3/decode_$x
        once --in=data/$x/{feats.scp,cmvn.scp,utt2spk,text,data} "${made[@]}" --in=$transforms --out=data-fmllr/$x -- \
            steps/make_fmllr_feats.sh --cmd "$train_cmd" --transform-dir $transforms data-fmllr/$x data/$x exp/tri3
    done
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
    train_model train_dnn.sh exp/dnn --layers 3 --width 512 --pretraining none --rates "0.1 0.2 0.4"
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
