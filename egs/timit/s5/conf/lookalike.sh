# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# One small system of each kind, for the few minutes of speech of local/timit/make_lookalike.sh.
gmms=(300 150 600)
combined=(exp/gaussian exp/dnn_tanh) search=(--beam 9 --lattice-beam 5 --max-active 1000)

_brief=(--search-frames 5000 --max-epochs 3)

may2017() {
    system gaussian train_kernel.sh --num-features 500 --bottleneck 50 --precondition 16 "${_brief[@]}"
    system selected train_kernel.sh --kernel sparse-gaussian --num-features 500 --bottleneck 50 --precondition 16 \
        --selection 3 --selection-frames 5000 "${_brief[@]}"
}

networks() {
    system dnn_tanh train_dnn.sh --layers 2 --width 128 --momentum 0.9 --rates "0.1 0.2" "${_brief[@]}"
    system dnn_rbm train_dnn.sh --layers 2 --width 128 --activation sigmoid --pretraining rbm --rbm-epochs 1 --momentum 0.9 \
        --rates "0.1 0.2" "${_brief[@]}"
}

lu2014() {
    system sag train_kernel.sh --num-features 300 --optimiser sag --rates "16 64" "${_brief[@]}"
    system blocks train_kernel.sh --num-features 500 --blocks 2 --precondition 16 --rates "128 512" "${_brief[@]}"
    system sum train_kernel.sh --kernel "laplacian + gaussian" --num-features 500 --precondition 16 --rates "128 512" \
        "${_brief[@]}"
}

chen2016() { system ridge train_ridge.sh --num-features 300; }

cho2009() { system multilayer train_multilayer.sh --examples 1000 --pca-examples 500 --components 50; }

kubo2012() { system pursuit train_pursuit.sh --basis 40 --penalty 1; }
