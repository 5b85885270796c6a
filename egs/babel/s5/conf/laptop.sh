# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# Systems of a size that two cores can train.
gmms=(1000 1000 16000)               # Gaussians of monophones; leaves and Gaussians of the others
combined=(exp/gaussian exp/dnn_tanh)

_rule=(--schedule halving --metric erll)

may2017() {
    local kernel
    for kernel in laplacian gaussian sparse-gaussian; do
        system $kernel train_kernel.sh --kernel $kernel --num-features 5000 --bottleneck 250 --rates "1 2 4" "${_rule[@]}"
    done
}

networks() {
    system dnn_tanh train_dnn.sh --layers 4 --width 1000 --bottleneck 250 --rates "0.05 0.1 0.2" "${_rule[@]}"
}
