# shellcheck shell=bash
# shellcheck disable=SC2154  # args are those of parse_options
# What all training scripts of steps/ share: options, sourced above parse_options, and the job itself.

feat_type=plain                 # features as they are, or deltas, lda, fmllr by the options and files of <ali-tr>
cmvn_opts=                      # CMVN per speaker, e.g. "--norm-means=true --norm-vars=true"
delta_order=0                   # deltas appended
splice=5                        # frames of context on either side
scaling=each                    # of inputs: each to mean 0 and variance 1; shared: all by one number, as suits pixels
seed=1                          # of all that is random: first weights, random features, order and choice of frames
device=cpu                      # cpu or cuda
num_threads=0                   # 0: all cores
cmd=run_local.sh                # where the job runs

begin_training() {  # begin_training: the arguments are what they should be; sets `dir`, num_threads, and options `inputs`
    need "${args[0]}/feats.scp" "${args[1]}/feats.scp" "${args[2]}/phones.txt" \
        "${args[3]}/final.mdl" "${args[3]}/tree" "${args[4]}/final.mdl"
    dir=${args[5]}
    no_data_in "$dir"
    mkdir -p "$dir/log"
    ((num_threads > 0)) || num_threads=$(cores)
    inputs=(--feat-type "$feat_type" --cmvn-opts "$cmvn_opts" --delta-order "$delta_order" --splice "$splice"
        --scaling "$scaling" --seed "$seed" --device "$device")
}

end_training() {  # end_training: the model is there, with how its features were made; one that fails changes neither
    keep_feature_opts "${args[0]}" "$dir"
    echo "$0: the model is in $dir" >&2
}

train() {  # train KIND OPTIONS…: kernelam train with these options and the shared ones, on the script's arguments
    local out log parts=() together=()
    begin_training
    out=$dir log=$dir/log/train.log
    if ((${blocks:-1} > 1)); then
        parts=("JOB=1:$blocks") out=$dir/block.JOB log=$dir/log/train.JOB.log
        keep_logs "$dir"/log/train.[0-9]*.log
    else
        keep_logs "$log"
    fi
    [[ ${ranks:-1} == 1 ]] || together=(together "$ranks")
    $cmd --num-threads "$num_threads" "${parts[@]}" "$log" kernelam "${together[@]}" train "$@" "${inputs[@]}" \
        "${args[@]:0:5}" "$out"
    if ((${#parts[@]})); then warnings "$dir"/log/train.*.log; else warnings "$log"; fi
}
