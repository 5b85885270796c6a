#!/usr/bin/env bash
# Align a data directory with a trained model, without speaker adaptation.
# Usage: steps/align_si.sh [options] <data> <lang> <model-dir> <ali-dir>
# e.g.: steps/align_si.sh --nj 4 data/train data/lang exp/mono exp/mono_ali
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

nj=4                            # jobs
cmd=$root/utils/run_local.sh    # where they run
scale_opts="--scale 0.1"        # the acoustic scale

parse_options "$@"
usage 4
set -- "${args[@]}"
data=$1 lang=$2 src=$3 dir=$4

need "$data/feats.scp" "$data/text" "$lang/L.fst" "$src/final.mdl" "$src/tree"
mkdir -p "$dir/log"
rm -f "$dir"/ali.*.gz
"$root/utils/split_data.sh" --per-utt "$data" "$nj"
for name in final.mdl tree phones.txt cmvn_opts delta_opts splice_opts final.mat; do
    [[ ! -e $src/$name ]] || cp "$src/$name" "$dir/$name"
done
# shellcheck disable=SC2086  # several words
$cmd JOB=1:"$nj" "$dir/log/align.JOB.log" \
    kernelam align $scale_opts \
    "$src" "$data/split${nj}utt/JOB" "$lang" "$dir/ali.JOB.gz"
echo "$nj" > "$dir/num_jobs"
echo "$0: aligned $data, alignments in $dir" >&2
