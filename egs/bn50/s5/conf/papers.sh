# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# The sizes of may2017. 5000 states, D = 100,000, bottlenecks of 1000, 360 inputs.
gmms=(2000 5000 75000 --context-opts "--context-width=5 --central-position=2")  # Gaussians of monophones; leaves and Gaussians of the others
threshold=1e-8                       # of pruning, a share of the perplexity
acwt=0.1 search=() lmwts=()
combined=(exp/sparse-gaussian_selected_br exp/dnn_tanh2000_br)

_bottleneck=(--schedule halving --bottleneck 1000)

kernels() {
    local kernel name rule=(--rates "1 2 4" "${_bottleneck[@]}")
    local size=(--num-features 100000 --bandwidth "0.5 1 2")
    for kernel in laplacian gaussian sparse-gaussian; do
        for name in $kernel ${kernel}_selected; do
            [[ $name == "$kernel" ]] || size+=(--selection 50 --selection-frames 2000000)
            system "${name}_b" train_kernel.sh --kernel $kernel "${size[@]}" "${rule[@]}"
            system "${name}_br" train_kernel.sh --kernel $kernel "${size[@]}" "${rule[@]}" --metric erll
        done
        size=("${size[@]:0:4}")
    done
}

networks() {
    local width rule=(--schedule halving --rates "0.05 0.1 0.2")
    for width in 1000 2000 4000; do
        system dnn_tanh${width}_nt train_dnn.sh --layers 4 --width $width "${rule[@]}"
        system dnn_tanh${width}_b train_dnn.sh --layers 4 --width $width "${rule[@]}" --bottleneck 1000
        system dnn_tanh${width}_r train_dnn.sh --layers 4 --width $width "${rule[@]}" --metric erll
        system dnn_tanh${width}_br train_dnn.sh --layers 4 --width $width "${rule[@]}" --bottleneck 1000 --metric erll
    done
}
