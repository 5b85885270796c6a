# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# A system of each paper.
gmms=(100 60 200) em=(--num-iters 3 --max-iter-inc 2)
combined=(exp/selected exp/dnn_tanh) search=(--beam 9 --lattice-beam 5 --max-active 1000)
_brief=(--search-frames 2000 --max-epochs 3 --num-threads 1)
may2017() {
    system selected train_kernel.sh --num-features 300 --selection 2 --selection-frames 4000 --precondition 16 --rates 256 \
        "${_brief[@]}"
}
networks() { system dnn_tanh train_dnn.sh --layers 1 --width 128 --momentum 0.9 --rates 0.2 "${_brief[@]}"; }
lu2014() { system blocks train_kernel.sh --num-features 300 --blocks 2 --precondition 16 --rates 256 "${_brief[@]}"; }
chen2016() { system ridge train_ridge.sh --num-features 150 --nj 1 --num-threads 1; }
cho2009() { system multilayer train_multilayer.sh --examples 500 --pca-examples 300 --components 40 --num-threads 1; }
kubo2012() { system pursuit train_pursuit.sh --basis 20 --penalty 1 --num-threads 1; }
