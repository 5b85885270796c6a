#!/usr/bin/env bash
# Three kernels with and without a bottleneck, the ERLL rule and feature selection, on 300,000 frames of Iban.
# Usage: ./kernels.sh --corpus <dir> [options]
# e.g.: ./kernels.sh --corpus /corpora/kaldi-iban --nj 4
# After stage 0 of run.sh. What is current is skipped.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/utils/options.sh"

nj=2                                         # parallel jobs of decoding; results do not depend on it
corpus=                                      # the folder of the Kaldi experiment, as of run.sh
kernels="laplacian gaussian sparse-gaussian" # rows of the table
tricks="b br nt r"                           # its columns: b a bottleneck, r the ERLL rule, nt neither
device=cpu                                   # where models are trained: cpu or cuda
seed=1                                       # of the models

parse_options "$@"
usage 0
[[ -z $corpus ]] || corpus=$(readlink -f "$corpus")
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
. ./path.sh
. ./cmd.sh
[[ -n $corpus ]] || die "--corpus is needed: the folder of a Kaldi experiment on Iban, as README.md describes it"
need data/{train,heldout,dev}/feats.scp exp/graph/HCLG.fst
ali=$corpus/exp/gmm_ali

# Widths are the best of 0.3, 0.6 and 1 by heldout cross-entropy, of models with a bottleneck.
declare -A bandwidth=([laplacian]=1 [gaussian]=0.6 [sparse-gaussian]=1)

once --in=data/train/{feats.scp,cmvn.scp,utt2spk,spk2utt,text} --out=data/train_300k -- \
    utils/subset_data_dir.sh data/train 310 data/train_300k

train_model() {  # train_model DIR OPTIONS…
    local dir=$1
    shift
    once --in=data/{train_300k,heldout}/{feats.scp,cmvn.scp,utt2spk} --in="$corpus/fbank" --in="${ali}_"{train,heldout} \
        "${origin[@]/#/--in=}" \
        --out="$dir"/{model.safetensors,ali_train_pdf.counts,final.mdl,tree,phones.txt,model.json,epochs.jsonl} -- \
        steps/train_kernel.sh --cmd "$cuda_cmd" --device "$device" --seed "$seed" --schedule halving --max-epochs 6 \
        --cmvn-opts "--norm-means=true --norm-vars=true" --num-features 5000 --precondition 32 --rates "8 16 32" "$@" \
        data/train_300k data/heldout "$corpus/data/lang_test" "${ali}_train" "${ali}_heldout" "$dir"
}

decode() {  # decode DIR: and score, the weights tuned on heldout
    local dir=$1 x tuning
    for x in heldout dev; do
        tuning=()
        [[ $x == heldout ]] || tuning=("--in=$dir/decode_heldout/scoring_kaldi/best_wer")
        once --in=data/$x/{feats.scp,cmvn.scp,utt2spk,text} --in="$corpus/fbank" --in=exp/graph "${tuning[@]}" \
            --in="$dir"/{model.safetensors,ali_train_pdf.counts,final.mdl} --out="$dir/decode_$x" -- \
            steps/decode.sh --nj "$nj" --cmd "$decode_cmd" --acwt 0.1 --beam 13 --lattice-beam 6 \
            ${tuning:+--tuned-on "$dir/decode_heldout"} exp/graph data/$x "$dir/decode_$x"
    done
}

# Features are selected by a model with a bottleneck; the others are trained on the same features.
dirs=()
for kernel in $kernels; do
    [[ ${bandwidth[$kernel]:-} ]] || die "there is no width for the kernel $kernel here, only for ${!bandwidth[*]}"
    for name in b_fs $tricks; do
        for dir in exp/kernels/${kernel}_$name exp/kernels/${kernel}_${name%_fs}_fs; do
            [[ " ${dirs[*]} " != *" $dir "* ]] || continue
            origin=() options=(--kernel "$kernel" --bandwidth "${bandwidth[$kernel]}")
            [[ $name != b* ]] || options+=(--bottleneck 128)
            [[ $name != *r ]] || options+=(--metric erll)
            if [[ $dir == *_b_fs ]]; then
                options+=(--selection 50 --selection-frames 100000)
            elif [[ $dir == *_fs ]]; then
                options+=(--features-of "exp/kernels/${kernel}_b_fs")
                origin=("exp/kernels/${kernel}_b_fs/model.safetensors")
            fi
            echo "$dir"
            train_model "$dir" "${options[@]}"
            decode "$dir"
            dirs+=("$dir")
        done
    done
done
kernelam report --title "Iban radio news: kernels and tricks on 300,000 frames" --tuned heldout --tested dev \
    --baseline "${dirs[0]}" --output KERNELS.md "${dirs[@]}"
cat KERNELS.md
