# shellcheck shell=bash
# shellcheck disable=SC2154  # args are those of parse_options
# What steps/make_mfcc.sh and steps/make_fbank.sh share: options, sourced above parse_options, and the work itself.

nj=4                           # number of jobs; the bytes do not depend on it
cmd=run_local.sh               # where jobs run; Kaldi's run.pl, queue.pl, slurm.pl serve too
compress=true                  # one byte a number instead of four
write_utt2num_frames=true      # write <data>/utt2num_frames
resample=false                 # sound of another rate than the features are made of is resampled, and named; else an error

make_features() {  # make_features KIND CONFIG: of the script's <data> [<logdir> [<featuredir>]]; jobs make parts, which merge
    local kind=$1 config=$2 data=${args[0]%/} logdir dir name utterances job folders=()
    logdir=${args[1]:-$data/log} dir=${args[2]:-$data/data}
    need "$config" "$data/utt2spk" "$data/wav.scp"
    "$root/utils/validate_data_dir.sh" --no-text --no-feats "$data"

    # what is left of an earlier run would name an archive that is about to change
    if [[ -e $data/feats.scp ]]; then
        mkdir -p "$data/.backup"
        mv "$data/feats.scp" "$data/.backup"
    fi

    utterances=$(wc -l < "$data/utt2spk")
    ((nj <= utterances)) || nj=$utterances
    name=raw_${kind}_$(basename "$(readlink -f "$data")")
    kernelam data split --per-utt --dest "$logdir/$name" "$data" "$nj"
    parts=$dir/$name.parts
    trap 'rm -rf "$parts"' EXIT
    rm -rf "$parts"
    mkdir -p "$logdir" "$parts"
    $cmd JOB=1:"$nj" "$logdir/make_$name.JOB.log" kernelam features "$kind" --config "$config" --compress "$compress" --resample "$resample" \
        "$logdir/$name/split${nj}utt/JOB" "$parts/JOB"

    warnings "$logdir/make_$name".*.log
    for ((job = 1; job <= nj; job++)); do folders+=("$parts/$job"); done
    kernelam features merge --write-utt2num-frames "$write_utt2num_frames" "$data" "$dir/$name.ark" "${folders[@]}"
    echo "$0: made $kind features of $utterances utterances of $data" >&2
}
