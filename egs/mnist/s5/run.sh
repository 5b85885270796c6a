#!/usr/bin/env bash
# Images: kernel models and networks on MNIST, CIFAR-10, look-alikes of older sets, or digits that come with scikit-learn.
# Usage: ./run.sh [options]
# e.g.: ./run.sh --task mnist --corpus /corpora/mnist
# Without --stage, what is up to date is skipped; with it, everything from that stage on is done again.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/utils/options.sh"

stage=            # the first stage to run, even if its results are up to date
stop_stage=11     # the last stage to run
nj=2              # models that are trained side by side, each in one thread; results do not depend on it
task=digits       # of conf/<task>.sh: digits, mnist, cifar, or a look-alike: rectangles, convex, back-rand, back-image
binary=false      # two classes, the first five against the others (kubo2012)
corpus=           # the folder of the files of MNIST (idx), which back-rand and back-image need too, or CIFAR-10 (binary)
device=cpu        # where models are trained: cpu or cuda
seed=1            # of the models

parse_options "$@"
usage 0
[[ -z $corpus ]] || corpus=$(place_of "$corpus")
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
[[ -e conf/$task.sh ]] || die "--task is digits, mnist, cifar, rectangles, convex, back-rand or back-image, not $task"
case $task in
    digits | rectangles | convex) corpus='' ;;  # which are made here
    *) [[ -n $corpus ]] || die "--corpus is needed: the folder with the files of ${task/back-*/MNIST}" ;;
esac
[[ $binary == false || $task != @(rectangles|convex) ]] || die "--binary is for tasks of ten classes; $task has two"
. ./path.sh local/mnist/requirements.txt
. ./cmd.sh
. utils/stages.sh
machines=false deformed=false kernel_options=() declarations=()
# shellcheck source=conf/mnist.sh
. "conf/$task.sh"
name=$task$([[ $binary == false ]] || echo -binary)
data=data/$name exp=exp/$name sources=()
[[ -z $corpus ]] || sources=(--in="$corpus")

if stage 0 "images: an utterance of one frame each"; then
    options=(--task "$task" ${corpus:+--corpus "$corpus"})
    [[ $binary == false ]] || options+=(--binary)
    once --in=local/mnist "${sources[@]}" --out="$data"/{train,heldout,test,lang} --out="$exp"/ali_{train,heldout,test} -- \
        local/mnist/prepare.sh "${options[@]}" "$data" "$exp/ali"
fi

# All models see pixels times one number, and choose on heldout images.
train_model() {  # train_model SCRIPT NAME OPTIONS…
    local script=$1 dir=$exp/$2
    shift 2
    once --in="$data"/{train,heldout} --in="$exp"/ali_{train,heldout} \
        --out="$dir"/{model.safetensors,ali_train_pdf.counts,final.mdl,tree,phones.txt,model.json} -- \
        "steps/$script" --cmd "$cuda_cmd" --device "$device" --seed "$seed" --num-threads 1 --splice 0 --scaling shared \
        "$@" "$data/train" "$data/heldout" "$data/lang" "$exp/ali_train" "$exp/ali_heldout" "$dir"
}

running=()
wait_for() {  # wait_for N: until fewer than N models are being trained; where one has failed, until none is
    local most=$1 failed=false
    while ((${#running[@]} >= most)); do
        wait "${running[0]}" || most=1 failed=true
        running=("${running[@]:1}")
    done
    ! $failed || exit 1
}
side_by_side() {  # side_by_side SCRIPT NAME OPTIONS…: train_model, at most nj at once
    wait_for "$nj"
    train_model "$@" &
    running+=($!)
}

one_by_one() { ((${#declarations[@]} == 0)) && stage "$@"; }  # a stage of tasks for which no grid is declared

descend() {  # descend SCRIPT NAME OPTIONS…: a model of the images, and another of deformed ones
    side_by_side "$@" --search-frames "$search" --max-epochs "$epochs"
    ! $deformed || side_by_side "$1" "$2_deformed" "${@:3}" --search-frames "$search" --max-epochs $((2 * epochs)) \
        --augment deform:1
}

if one_by_one 5 "random Fourier features"; then
    descend train_kernel.sh kernel "${kernel_options[@]}" --num-features "$features" \
        --bandwidth "$bandwidths" --rates "$kernel_rates"
fi
if one_by_one 6 "network"; then
    descend train_dnn.sh dnn --layers "$layers" --width "$width" --rates "0.05 0.1 0.2"
fi
if one_by_one 7 "log-linear models: linear, of random images, and of pursued bases"; then
    side_by_side train_pursuit.sh linear --kernel polynomial:1 --method nystrom --basis "$pixels" --first "$pixels" \
        --penalty "$linear_penalties"
    for method in nystrom joint orthogonal; do
        side_by_side train_pursuit.sh $method --method $method --basis "$basis" --bandwidth "$basis_bandwidths" \
            --penalty "$penalties"
    done
fi
models=("$exp"/{kernel,dnn,linear,nystrom,joint,orthogonal,linear_svm})
! $deformed || models+=("$exp"/{kernel,dnn}_deformed)
! $machines || models+=("$exp"/{svm,multilayer})
if one_by_one 8 "support vector machines and a multilayer kernel machine"; then
    side_by_side train_svm.sh linear_svm --kernel linear --penalty "0.1 1 10"
    if $machines; then  # of exact kernels
        side_by_side train_svm.sh svm --kernel "arccos1 o arccos0"
        side_by_side train_multilayer.sh multilayer --kernel arccos1 --layers 1 --pca-examples 500 --components 100
    fi
fi
wait_for 1

if one_by_one 9 "classes of heldout and test images"; then
    for dir in "${models[@]}"; do
        for x in heldout test; do
            tuning=()
            [[ $x == heldout ]] || tuning=(--tuned-on "$dir/decode_heldout")
            once --in="$data/$x" --in="$dir"/{model.safetensors,model.json} --out="$dir/decode_$x/scoring_kaldi" -- \
                steps/score_classes.sh --device "$device" "${tuning[@]}" "$data/lang" "$data/$x" "$dir/decode_$x"
        done
    done
fi

if one_by_one 10 "report"; then
    kernelam report --title "$name" --tuned heldout --baseline "$exp/nystrom" --output "$exp/RESULTS.md" "${models[@]}"
    cat "$exp/RESULTS.md"
fi

# Cells that are done and current are skipped, --stage or not: what a grid declares takes days.
if ((${#declarations[@]})) && stage 11 "the models that conf/{$(IFS=,; echo "${declarations[*]}")}.toml declare"; then
    for x in "${declarations[@]}"; do
        kernelam grid --cmd "$cuda_cmd --max-jobs-run $nj" --set task="$name" --output "$exp/$x.md" "conf/$x.toml"
        cat "$exp/$x.md"
    done
fi
