# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# For all seven hours, on a few cores.
gmms=(1000 1250 15000) threshold=1e-8 search=(--beam 13 --lattice-beam 6)

_chosen=(--search-frames 200000)

kernels() {
    system kernel train_kernel.sh --kernel "gaussian o fda:120" --num-features 5000 --bottleneck 256 --precondition 32 \
        --rates "8 16 32" --max-epochs 2 "${_chosen[@]}"
}

networks() { system dnn train_dnn.sh --layers 3 --width 512 --pretraining none --rates "0.1 0.2 0.4" "${_chosen[@]}"; }
