# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# Systems of a size for a few cores. The names of systems are those of model directories under exp.
gmms=(1000 2500 20000)               # Gaussians of monophones; leaves and Gaussians of the others
threshold=1e-7                       # of pruning, a share of the perplexity
acwt=0.1 search=() lmwts=()
combined=(exp/gaussian exp/dnn_tanh)

_rule=(--schedule halving --metric erll --bottleneck 250 --max-epochs 8)

kernels() {
    local kernel
    for kernel in laplacian gaussian sparse-gaussian; do
        system $kernel train_kernel.sh --kernel $kernel --num-features 10000 --rates "1 2 4" "${_rule[@]}"
    done
    system sparse-gaussian_selected train_kernel.sh --kernel sparse-gaussian --num-features 10000 --rates "1 2 4" "${_rule[@]}" \
        --selection 20 --selection-frames 500000
}

networks() {
    system dnn_tanh train_dnn.sh --layers 4 --width 1000 --rates "0.05 0.1 0.2" "${_rule[@]}"
}
