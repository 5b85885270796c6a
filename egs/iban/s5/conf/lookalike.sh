# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# One small system of each kind, for the few minutes of speech of local/iban/make_lookalike.sh.
gmms=(300 150 600) threshold=1e-5 search=(--beam 9 --lattice-beam 5 --max-active 1000)

_brief=(--search-frames 5000 --max-epochs 3)

kernels() { system kernel train_kernel.sh --num-features 500 --bottleneck 50 --precondition 16 "${_brief[@]}"; }

networks() { system dnn train_dnn.sh --layers 2 --width 128 --momentum 0.9 --rates "0.1 0.2" "${_brief[@]}"; }
