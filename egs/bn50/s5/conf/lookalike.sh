# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# One small system of each kind, for the few minutes of speech of local/bn50/make_lookalike.sh.
gmms=(300 200 1000)
threshold=1e-5
acwt=0.2 search=(--beam 11 --lattice-beam 6 --max-active 2000) lmwts=(--min-lmwt 1 --word-ins-penalty "0.0 0.5")
combined=(exp/gaussian exp/dnn_tanh)

_brief=(--bottleneck 50 --search-frames 5000 --max-epochs 4)

kernels() {
    system gaussian train_kernel.sh --num-features 600 --precondition 16 "${_brief[@]}"
    system selected train_kernel.sh --kernel sparse-gaussian --num-features 600 --precondition 16 \
        --selection 3 --selection-frames 5000 "${_brief[@]}"
}

networks() { system dnn_tanh train_dnn.sh --layers 2 --width 128 --momentum 0.9 --rates "0.1 0.2" "${_brief[@]}"; }
