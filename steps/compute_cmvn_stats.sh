#!/usr/bin/env bash
# Compute the statistics for mean and variance normalisation of each speaker of a data directory: cmvn.scp.
# Usage: steps/compute_cmvn_stats.sh [options] <data> [<logdir> [<cmvndir>]]
# <logdir> is <data>/log, <cmvndir> is <data>/data unless given.
# e.g.: steps/compute_cmvn_stats.sh data/train exp/make_mfcc/train mfcc
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

cmd=run_local.sh               # where the job runs

parse_options "$@"
usage 1 3
set -- "${args[@]}"
data=${1%/}
logdir=${2:-$data/log} dir=${3:-$data/data}

need "$data/feats.scp" "$data/utt2spk"
name=cmvn_$(basename "$(readlink -f "$data")")
mkdir -p "$logdir"
$cmd "$logdir/$name.log" kernelam features cmvn "$data" "$dir/$name.ark"
echo "$0: made CMVN statistics of $(wc -l < "$data/cmvn.scp") speakers of $data" >&2
