# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
gmms=(100 60 200) em=(--num-iters 3 --max-iter-inc 2)
combined=(exp/gaussian exp/dnn_tanh) beams=(--beam 9 --lattice-beam 5 --max-active 1000)
_brief=(--search-frames 2000 --max-epochs 3 --num-threads 1)
may2017() { system gaussian train_kernel.sh --num-features 300 --precondition 16 --rates 256 "${_brief[@]}"; }
networks() { system dnn_tanh train_dnn.sh --layers 1 --width 128 --momentum 0.9 --rates 0.2 "${_brief[@]}"; }
