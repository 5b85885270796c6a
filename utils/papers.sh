# shellcheck shell=bash
# Systems of may2017 and lu2014 that several corpora have. Sourced by conf/papers.sh; `system` is that of stages.sh.

# tricks NAME RANK "RATES" "RATES WITH A BOTTLENECK" SCRIPT OPTIONS…: none, a bottleneck of that rank, halving by ERLL, both
tricks() {
    local name=$1 whole=(--schedule halving --rates "$3") narrow=(--schedule halving --rates "$4" --bottleneck "$2")
    shift 4
    system "${name}_nt" "$@" "${whole[@]}"
    system "${name}_b" "$@" "${narrow[@]}"
    system "${name}_r" "$@" "${whole[@]}" --metric erll
    system "${name}_br" "$@" "${narrow[@]}" --metric erll
}

kernels_of_may2017() {  # kernels_of_may2017 RANK COUNT: bottlenecks of that rank, so many features
    local kernel size=(--num-features "$2" --bandwidth "0.5 1 2")
    for kernel in laplacian gaussian sparse-gaussian; do
        tricks $kernel "$1" "16 32 64" "1 2 4" train_kernel.sh --kernel $kernel "${size[@]}"
        tricks ${kernel}_selected "$1" "16 32 64" "1 2 4" train_kernel.sh --kernel $kernel "${size[@]}" \
            --selection 50 --selection-frames 2000000
    done
}

networks_of_papers() {  # networks_of_papers RANK: those of may2017, with bottlenecks of that rank, and of lu2014
    local width depth
    for width in 1000 2000 4000; do
        tricks dnn_tanh$width "$1" "0.05 0.1 0.2" "0.05 0.1 0.2" train_dnn.sh --layers 4 --width $width
    done
    system dnn_sigmoid train_dnn.sh --layers 5 --width 1024 --activation sigmoid --schedule halving --rates "0.1 0.2 0.4"
    for depth in 1 2 3 4; do
        for width in 500 1000 2000; do
            system dnn_rbm${depth}x$width train_dnn.sh --layers $depth --width $width --activation sigmoid \
                --pretraining rbm --momentum "0.5 0.9" --schedule halving --rates "0.1 0.2 0.4"
        done
    done
}
