#!/usr/bin/env bash
# Train a GMM-HMM of states in context on features adapted to each speaker by fMLLR.
# Usage: steps/train_sat.sh [options] <num-leaves> <tot-gauss> <data> <lang> <ali> <exp>
# Features are those of <ali>, deltas or LDA. Training starts from the transforms of <ali>, if it has any.
# e.g.: steps/train_sat.sh --nj 4 2500 15000 data/train data/lang exp/tri2_ali exp/tri3
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"
. "$root/utils/gmm.sh"

fmllr_iters="2 4 6 12"                # steps of EM before which the transforms are estimated
silence_weight=0.0                    # of silence in them

parse_options "$@"
usage 6
begin_gmm
for name in delta_opts splice_opts final.mat; do
    [[ ! -e $ali/$name ]] || cp "$ali/$name" "$dir"
done
speaker_jobs=$(speaker_jobs "$data" "$nj")
kernelam data split --dest "$dir" "$data" "$speaker_jobs"

estimate() {  # estimate MODEL ALI [OPTIONS…]: $dir/trans.* and the frames they make
    local job model=$1 ali=$2
    shift 2
    mkdir -p "$dir/new"
    $cmd JOB=1:"$speaker_jobs" "$dir/log/fmllr.$(basename "$model").JOB.log" \
        kernelam gmm fmllr --silence-weight "$silence_weight" "$@" "$model" "$dir/split$speaker_jobs/JOB" "$lang" "$ali" \
        "$dir/new/trans.JOB"
    for ((job = speaker_jobs + 1; job <= nj; job++)); do : > "$dir/new/trans.$job"; done
    publish "$dir/new" "$dir"
    $cmd "$dir/log/adapt.log" kernelam gmm adapt "$data" "$dir/frames_plain" "$dir"
}
again() { estimate "$dir/$1.mdl" "$dir" --frames "$dir/frames" --transform-dir "$dir"; }

$cmd "$dir/log/pack.log" kernelam gmm pack --feat-type "$([[ -e $dir/final.mat ]] && echo lda || echo deltas)" \
    "$data" "$dir" "$dir/frames_plain"
if [[ -e $ali/trans.1 ]]; then
    jobs=$(jobs_of "$ali")
    for ((job = 1; job <= nj; job++)); do : > "$dir/trans.$job"; done
    for ((job = 1; job <= jobs; job++)); do cat "$ali/trans.$job" >> "$dir/trans.1"; done
    $cmd "$dir/log/adapt.log" kernelam gmm adapt "$data" "$dir/frames_plain" "$dir"
else
    estimate "$ali/final.mdl" "$ali" --frames "$dir/frames_plain"
fi
warnings "$dir"/log/fmllr.*.log
grow_tree
train_rounds "$fmllr_iters" again
$cmd "$dir/log/alimdl.log" kernelam gmm alimdl "$dir/$num_iters.mdl" "$dir/frames_plain" "$dir" "$dir/final.alimdl"
kernelam gmm finish --seconds "$SECONDS" --seed "$seed" "$dir/$num_iters.mdl" "$dir"
echo "$0: trained $dir/final.mdl" >&2
