# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# One small system of each kind, for the few minutes of speech of local/babel/make_lookalike.sh.
gmms=(300 150 600)
combined=(exp/gaussian exp/dnn_tanh)
beams=(--beam 10 --lattice-beam 6 --max-active 2000)

_brief=(--search-frames 5000 --max-epochs 3)

may2017() {
    system gaussian train_kernel.sh --num-features 500 --bottleneck 50 --precondition 16 "${_brief[@]}"
}

networks() {
    system dnn_tanh train_dnn.sh --layers 2 --width 128 --momentum 0.9 --rates "0.1 0.2" "${_brief[@]}"
}
