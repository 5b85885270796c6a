# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# The sizes of the papers. With --units 49 --frame-shift 5 the 147 states and 5 ms of may2017.
gmms=(1000 2500 15000)
combined=(exp/gaussian_br exp/dnn_tanh1000_br) search=()
. utils/papers.sh

may2017() { kernels_of_may2017 100 200000; }

networks() {
    networks_of_papers 100
    system dnn_relu train_dnn.sh --layers 4 --width 2000 --activation relu --normalise true --pretraining none \
        --optimiser adamw --l2 0.01 --dropout "0 0.1 0.2 0.3"
}

lu2014() {
    local kernel size=(--num-features 200000 --schedule halving --rates "16 32 64")
    system sag train_kernel.sh --num-features 25000 --optimiser sag --sag-table half --rates "16 32 64"
    system blocks train_kernel.sh --num-features 200000 --blocks 8 --schedule halving --rates "16 32 64"
    system sum train_kernel.sh --kernel "laplacian + gaussian" "${size[@]}"
    system product train_kernel.sh --kernel "laplacian * gaussian" "${size[@]}"
    for kernel in "pca:50" "pca:100" "pca:360" "fda:100"; do
        system "composition_${kernel/:/}" train_kernel.sh --kernel "gaussian o $kernel o laplacian#25000" "${size[@]}"
    done
}

chen2016() {
    local scheme count
    for count in 1000 2000 5000 10000 20000; do
        for scheme in one-vs-one one-vs-rest; do
            system ridge_${scheme}_$count train_ridge.sh --scheme $scheme --num-features $count --ridge "0.01 0.1 1 10"
        done
    done
}

cho2009() {
    local degree layers
    for degree in 0 1 2; do
        system arccos$degree train_kernel.sh --kernel arccos$degree --num-features 200000 --schedule halving --rates "16 32 64"
    done
    for layers in 1 2 3; do system multilayer$layers train_multilayer.sh --layers $layers; done
}

kubo2012() {
    local kernel method
    system linear train_pursuit.sh --kernel polynomial:1 --method nystrom --basis 440 --first 440 --penalty "0.1 1 10"
    for kernel in gaussian polynomial:2 polynomial:3; do
        for method in nystrom joint orthogonal; do
            system "${method}_${kernel/:/}" train_pursuit.sh --kernel $kernel --method $method --basis 1000 --penalty "0.1 1 10"
        done
    done
}
