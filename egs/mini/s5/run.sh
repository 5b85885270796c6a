#!/usr/bin/env bash
# From sound to word error rates on a fresh machine: a synthetic corpus, a monophone GMM, a kernel model, a DNN.
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
graph=exp/mono/graph archives=()

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

if stage 3 "labels: a monophone GMM from a flat start, and its alignments"; then
    once --in=data/train/{feats.scp,cmvn.scp,utt2spk,text,data} --in=data/lang \
        --out=exp/mono/{final.mdl,tree,phones.txt,cmvn_opts,delta_opts,model.json} -- \
        steps/train_mono.sh --nj "$nj" --cmd "$train_cmd" --seed "$seed" data/train data/lang exp/mono
    for x in train heldout; do
        once --in=data/$x/{feats.scp,cmvn.scp,utt2spk,text,data} --in=data/lang \
            --in=exp/mono/{final.mdl,tree,phones.txt,cmvn_opts,delta_opts} --out=exp/mono_ali_$x -- \
            steps/align_si.sh --nj "$nj" --cmd "$train_cmd" data/$x data/lang exp/mono exp/mono_ali_$x
    done
fi

if stage 4 "graph: HCLG"; then
    once --in=data/lang_test --in=exp/mono/{final.mdl,tree,phones.txt} --out="$graph" -- \
        utils/mkgraph.sh data/lang_test exp/mono "$graph"
fi

# Both models see the same inputs, choose from as many learning rates on as many frames, and train for as many epochs.
train_model() {  # train_model SCRIPT DIR OPTIONS…
    local script=$1 dir=$2
    shift 2
    once --in=data/{train,heldout}/{feats.scp,cmvn.scp,utt2spk,data} --in=data/lang --in=exp/mono_ali_{train,heldout} \
        --out="$dir"/{model.safetensors,ali_train_pdf.counts,final.mdl,tree,phones.txt,model.json,epochs.jsonl} -- \
        "steps/$script" --cmd "$cuda_cmd" --device "$device" --seed "$seed" \
        --cmvn-opts "--norm-means=true --norm-vars=true" --delta-order 2 --splice 5 \
        --search-frames 50000 --schedule halving --max-epochs 7 "$@" \
        data/train data/heldout data/lang exp/mono_ali_train exp/mono_ali_heldout "$dir"
}

# A rate of 8 does better on the frames of the search, but diverges in the first epoch.
if stage 5 "kernel model: Gaussian random Fourier features"; then
    train_model train_kernel.sh exp/kernel --num-features 5000 --bandwidth 0.6 --bottleneck 64 --rates "1 2 4"
fi

if stage 6 "DNN: tanh units"; then
    train_model train_dnn.sh exp/dnn --layers 3 --width 512 --pretraining none --rates "0.1 0.2 0.4"
fi

# The GMM's likelihoods differ more between states than the others', so that its search wants them scaled down further.
if stage 7 "decode: lattices of dev and test"; then
    for dir in exp/mono exp/kernel exp/dnn; do
        acwt=0.2
        [[ $dir != exp/mono ]] || acwt=0.1
        for x in dev test; do
            decode_once $dir $x --acwt $acwt --beam 11 --lattice-beam 5 --max-active 3000
        done
    done
fi

if stage 8 "score: weights tuned on dev, applied to test"; then
    for dir in exp/mono exp/kernel exp/dnn; do
        score_once $dir dev test --min-lmwt 2
    done
fi

if stage 9 "report"; then
    kernelam report --title "mini: synthetic speech" --baseline exp/mono --output RESULTS.md exp/mono exp/kernel exp/dnn
    cat RESULTS.md
fi
