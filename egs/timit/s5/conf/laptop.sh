# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# Systems of a size for two cores. The names of systems are those of model directories under exp.
gmms=(1000 2000 15000)               # Gaussians of monophones; leaves and Gaussians of the others
combined=(exp/gaussian exp/dnn_tanh) search=()

_rule=(--schedule halving --metric erll)

may2017() {
    local kernel
    for kernel in laplacian gaussian sparse-gaussian; do
        system $kernel train_kernel.sh --kernel $kernel --num-features 5000 --bottleneck 100 --rates "1 2 4" "${_rule[@]}"
    done
    system sparse-gaussian_selected train_kernel.sh --kernel sparse-gaussian --num-features 5000 --bottleneck 100 \
        --selection 20 --selection-frames 200000 --rates "1 2 4" "${_rule[@]}"
}

networks() {
    system dnn_tanh train_dnn.sh --layers 4 --width 1000 --rates "0.05 0.1 0.2" "${_rule[@]}"
    system dnn_sigmoid train_dnn.sh --layers 5 --width 1024 --activation sigmoid --momentum 0.9 --rates "0.1 0.2 0.4"
    system dnn_rbm train_dnn.sh --layers 3 --width 1000 --activation sigmoid --pretraining rbm --momentum 0.9 --rates "0.1 0.2 0.4"
    system dnn_relu train_dnn.sh --layers 4 --width 1000 --activation relu --normalise true --pretraining none \
        --optimiser adamw --l2 0.01 --dropout 0.2
}

lu2014() {
    system sag train_kernel.sh --num-features 2000 --optimiser sag --rates "16 32 64"
    system blocks train_kernel.sh --num-features 5000 --blocks 4 --precondition 32 --rates "128 256 512"
    system sum train_kernel.sh --kernel "laplacian + gaussian" --num-features 5000 --bottleneck 100 --rates "1 2 4" "${_rule[@]}"
    system product train_kernel.sh --kernel "laplacian * gaussian" --num-features 5000 --bottleneck 100 --rates "1 2 4" "${_rule[@]}"
    system composition train_kernel.sh --kernel "gaussian o pca:100 o laplacian#5000" --num-features 5000 --bottleneck 100 \
        --rates "1 2 4" "${_rule[@]}"
}

chen2016() {
    local scheme
    for scheme in one-vs-one one-vs-rest; do
        system ridge_$scheme train_ridge.sh --scheme $scheme --num-features 2000 --ridge "0.1 1 10"
    done
}

cho2009() {
    system arccos1 train_kernel.sh --kernel arccos1 --num-features 5000 --bottleneck 100 --rates "1 2 4" "${_rule[@]}"
    system multilayer train_multilayer.sh
}

kubo2012() {
    system linear train_pursuit.sh --kernel polynomial:1 --method nystrom --basis 440 --first 440 --penalty "0.1 1 10"
    system nystrom train_pursuit.sh --method nystrom --basis 1000 --penalty "0.1 1 10"
    system pursuit train_pursuit.sh --basis 200 --penalty "0.1 1 10"
    system pursuit_joint train_pursuit.sh --method joint --basis 200 --penalty "0.1 1 10"
}
