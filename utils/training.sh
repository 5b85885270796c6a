# shellcheck shell=bash
# shellcheck disable=SC2154  # rates are the script's own, args those of parse_options
# What steps/train_kernel.sh and steps/train_dnn.sh share: options, sourced above parse_options, and the job itself.

feat_type=plain                 # features as they are, or deltas, lda, fmllr by the options and files of <ali-tr>
cmvn_opts=                      # CMVN per speaker, e.g. "--norm-means=true --norm-vars=true"
delta_order=0                   # deltas appended
splice=5                        # frames of context on either side
search_frames=100000            # frames that each learning rate is tried on
max_epochs=20                   # training ends here at the latest
max_halvings=6                  # or with this many halvings of the learning rate
metric=ce                       # what the halving rule watches: ce or erll
seed=1                          # of the first weights, of random features and of the order of frames
device=cpu                      # cpu or cuda
num_threads=0                   # 0: all cores
cmd=run_local.sh                # where the job runs

train() {  # train KIND OPTIONS…: kernelam train with these options and the shared ones, on the script's arguments
    local dir=${args[5]}
    need "${args[0]}/feats.scp" "${args[1]}/feats.scp" "${args[2]}/phones.txt" \
        "${args[3]}/final.mdl" "${args[3]}/tree" "${args[4]}/final.mdl"
    mkdir -p "$dir/log"
    ((num_threads > 0)) || num_threads=$(cores)
    $cmd --num-threads "$num_threads" "$dir/log/train.log" \
        kernelam train "$@" --feat-type "$feat_type" --cmvn-opts "$cmvn_opts" --delta-order "$delta_order" \
        --splice "$splice" \
        --rates "$rates" --search-frames "$search_frames" --max-epochs "$max_epochs" --max-halvings "$max_halvings" \
        --metric "$metric" --seed "$seed" --device "$device" "${args[@]}"
    warnings "$dir/log/train.log"
    echo "$0: trained $dir" >&2
}
