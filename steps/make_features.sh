#!/usr/bin/env bash
# Compute the features of a data directory in parallel jobs and merge them: feats.scp, utt2num_frames, utt2dur,
# frame_shift. steps/make_mfcc.sh and steps/make_fbank.sh call it. The bytes do not depend on --nj.
# Usage: steps/make_features.sh [options] <mfcc|fbank> <config> <data> [<logdir> [<featuredir>]]
# e.g.: steps/make_features.sh --nj 4 mfcc conf/mfcc.conf data/train
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

nj=4                           # number of jobs
cmd=run_local.sh               # where jobs run
compress=true                  # one byte a number instead of four
write_utt2num_frames=true      # write <data>/utt2num_frames

parse_options "$@"
usage 3 5
set -- "${args[@]}"
kind=$1 config=$2 data=${3%/}
logdir=${4:-$data/log} dir=${5:-$data/data}

need "$config" "$data/utt2spk" "$data/wav.scp"
"$root/utils/validate_data_dir.sh" --no-text --no-feats "$data"

# what is left of an earlier run would name an archive that is about to change
if [[ -e $data/feats.scp ]]; then
    mkdir -p "$data/.backup"
    mv "$data/feats.scp" "$data/.backup"
fi

utterances=$(wc -l < "$data/utt2spk")
((nj <= utterances)) || nj=$utterances
"$root/utils/split_data.sh" --per-utt "$data" "$nj"

name=raw_${kind}_$(basename "$(readlink -f "$data")")
parts=$dir/$name.parts
trap 'rm -rf "$parts"' EXIT
rm -rf "$parts"
mkdir -p "$logdir" "$parts"
$cmd JOB=1:"$nj" "$logdir/make_$name.JOB.log" \
    kernelam features "$kind" --config "$config" --compress "$compress" "$data/split${nj}utt/JOB" "$parts/JOB"

mapfile -t folders < <(seq -f "$parts/%g" "$nj")
kernelam features merge --write-utt2num-frames "$write_utt2num_frames" "$data" "$dir/$name.ark" "${folders[@]}"
echo "$0: made $kind features of $utterances utterances of $data" >&2
