# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# The sizes of the papers: days on a GPU.
gmms=(1000 1000 16000 --context-opts "--context-width=5 --central-position=2")
combined=(exp/gaussian_br exp/dnn_tanh1000_br)

may2017() {
    local kernel size=(--num-features 100000 --bandwidth "0.5 1 2")
    for kernel in laplacian gaussian sparse-gaussian; do
        tricks $kernel 250 "16 32 64" "1 2 4" train_kernel.sh --kernel $kernel "${size[@]}"
        tricks ${kernel}_selected 250 "16 32 64" "1 2 4" train_kernel.sh --kernel $kernel "${size[@]}" \
            --selection 50 --selection-frames 2000000
    done
}

networks() {
    local width depth
    for width in 1000 2000 4000; do
        tricks dnn_tanh$width 250 "0.05 0.1 0.2" "0.05 0.1 0.2" train_dnn.sh --layers 4 --width $width
    done
    system dnn_sigmoid train_dnn.sh --layers 5 --width 1024 --activation sigmoid --schedule halving --rates "0.1 0.2 0.4"
    for depth in 1 2 3 4; do
        for width in 500 1000 2000; do
            system dnn_rbm${depth}x$width train_dnn.sh --layers $depth --width $width --activation sigmoid \
                --pretraining rbm --momentum "0.5 0.9" --schedule halving --rates "0.1 0.2 0.4"
        done
    done
}
