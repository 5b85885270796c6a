# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # read by run.sh, and its own
# egs/bn50 in little, as one of its sizes: labels of monophones, features that nobody adapted, a few small models.
threshold=1e-5
acwt=0.2 search=(--beam 9 --lattice-beam 4 --max-active 600) lmwts=(--min-lmwt 1 --max-lmwt 6 --word-ins-penalty 0.0)
gmms=() combined=(exp/gaussian exp/dnn_tanh)

gmm_ladder() {
    train_gmm_once train_mono.sh exp/tri3 "" --totgauss 200 --num-iters 8 --max-iter-inc 6
    for x in train heldout; do align_once align_si.sh $x exp/tri3 exp/tri3_ali_$x; done
}

adapted_features() {
    utils/mkgraph.sh data/lang_test exp/tri3 "$graph"
    for x in dev test; do sets=data decode_once exp/tri3 $x "$@"; done
    for x in train heldout dev test; do utils/copy_data_dir.sh data/$x data-fmllr/$x; done
}

_brief=(--cmvn-opts "--norm-means=true" --delta-order 1 --search-frames 3000 --max-epochs 4 --num-threads 1)
kernels() { system gaussian train_kernel.sh --num-features 600 --precondition 16 --rates 512 "${_brief[@]}"; }
networks() { system dnn_tanh train_dnn.sh --layers 1 --width 64 --momentum 0.9 --rates 0.2 "${_brief[@]}"; }
