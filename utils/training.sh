# shellcheck shell=bash
# shellcheck disable=SC2154  # rates are the script's own, args those of parse_options
# What steps/train_kernel.sh and steps/train_dnn.sh share: options, sourced above parse_options, and the job itself.

feat_type=plain                 # features as they are, or deltas, lda, fmllr by the options and files of <ali-tr>
cmvn_opts=                      # CMVN per speaker, e.g. "--norm-means=true --norm-vars=true"
delta_order=0                   # deltas appended
splice=5                        # frames of context on either side
scaling=each                    # of inputs: each to mean 0 and variance 1; shared: all by one number, as suits pixels
search_frames=100000            # frames that each learning rate is tried on; few favour high rates
schedule=decay                  # rate falls to zero; average: weights of the last epoch averaged; halving: papers' rule
max_epochs=0                    # training ends here at the latest; 0: 20 with halving, 4 otherwise
max_halvings=6                  # or with this many halvings of the learning rate
metric=ce                       # chooses the rate on heldout frames, and halves it: ce, erll[:β], capped[:λ], top-k[:κ]
l2=0                            # half this times the squared weights joins the loss (adamw: weight decay); or several
augment=                        # noise on the inputs: mask:p or noise:s
seed=1                          # of the first weights, of random features and of the order of frames
device=cpu                      # cpu or cuda
precision=single                # of matrix products: single, mixed (bfloat16, where a GPU or CPU has it), tf32 (GPU)
num_threads=0                   # 0: all cores
cmd=run_local.sh                # where the job runs

train() {  # train KIND OPTIONS…: kernelam train with these options and the shared ones, on the script's arguments
    local dir=${args[5]} out=${args[5]} log=${args[5]}/log/train.log parts=()
    need "${args[0]}/feats.scp" "${args[1]}/feats.scp" "${args[2]}/phones.txt" \
        "${args[3]}/final.mdl" "${args[3]}/tree" "${args[4]}/final.mdl"
    mkdir -p "$dir/log"
    ((num_threads > 0)) || num_threads=$(cores)
    if ((${blocks:-1} > 1)); then
        parts=("JOB=1:$blocks") out=$dir/block.JOB log=$dir/log/train.JOB.log
        keep_logs "$dir"/log/train.[0-9]*.log
    else
        keep_logs "$log"
    fi
    $cmd --num-threads "$num_threads" "${parts[@]}" "$log" \
        kernelam train "$@" --feat-type "$feat_type" --cmvn-opts "$cmvn_opts" --delta-order "$delta_order" \
        --splice "$splice" --scaling "$scaling" --rates "$rates" --search-frames "$search_frames" --schedule "$schedule" \
        --max-epochs "$max_epochs" --max-halvings "$max_halvings" --metric "$metric" --l2 "$l2" --augment "$augment" \
        --seed "$seed" --device "$device" --precision "$precision" "${args[@]:0:5}" "$out"
    if ((${#parts[@]})); then warnings "$dir"/log/train.*.log; else warnings "$log"; fi
}
