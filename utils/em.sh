# shellcheck shell=bash
# shellcheck disable=SC2154  # dir, lang, nj, cmd, seed, boost_silence are those of the step
# What all steps that train GMMs in $dir share: re-estimation and alignment as jobs.

# update_model X Y "TOTALS" [OPTIONS…]: $dir/Y.mdl from $dir/X.mdl by steps of EM, each with a split to so many Gaussians
update_model() {
    local job parts=()
    $cmd JOB=1:"$nj" "$dir/log/update.$1.JOB.log" kernelam gmm update --totals "$3" --part "JOB/$nj" \
        --seed "$((seed + 1000 * $1))" "${@:4}" "$dir/$1.mdl" "$dir/frames" "$dir" "$dir/part.JOB.mdl"
    for ((job = 1; job <= nj; job++)); do parts+=("$dir/part.$job.mdl"); done
    $cmd "$dir/log/merge.$1.log" kernelam gmm merge "$dir" "${parts[@]}" "$dir/$2.mdl"
    rm -f "${parts[@]}" "$dir/$1.mdl"
}

realign() {  # realign X [OPTIONS…]: $dir/ali.* by $dir/X.mdl
    local x=$1
    shift
    $cmd JOB=1:"$nj" "$dir/log/align.$x.JOB.log" kernelam align --frames "$dir/frames" \
        --boost-silence "$boost_silence" "$@" "$dir/$x.mdl" "$dir/split${nj}utt/JOB" "$lang" "$dir/ali.JOB.gz"
}
