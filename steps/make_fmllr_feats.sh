#!/usr/bin/env bash
# Make a data directory with the features that a GMM takes, adapted to each speaker by fMLLR: for networks and kernels.
# Usage: steps/make_fmllr_feats.sh --transform-dir <ali-or-decode-dir> <data> <src-data> <gmm-dir> [<logdir> [<featuredir>]]
# <logdir> is <data>/log, <featuredir> is <data>/data unless given.
# e.g.: steps/make_fmllr_feats.sh --transform-dir exp/tri3/decode_dev data-fmllr/dev data/dev exp/tri3
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

cmd=run_local.sh               # where the job runs
transform_dir=                 # trans.* of the speakers; without it, the features are not adapted

parse_options "$@"
usage 3 5
set -- "${args[@]}"
data=${1%/} src=$2 gmm=$3
logdir=${4:-$data/log} dir=${5:-$data/data}

need "$src/feats.scp" "$src/utt2spk" "$gmm/final.mdl" ${transform_dir:+"$transform_dir/trans.1"}
[[ ! $data -ef $src ]] || die "$data has the features that these are made of; name another directory for the new ones"
kernelam data copy "$src" "$data"
rm -f "$data"/feats.scp "$data"/cmvn.scp
$cmd "$logdir/make_fmllr_feats_$(basename "$data").log" kernelam features processed \
    ${transform_dir:+--transform-dir "$transform_dir"} "$gmm" "$src" "$data" "$dir/fmllr_$(basename "$data").ark"
[[ -z $transform_dir || ! -e $data/feature_opts ]] || echo "fmllr $(readlink -f "$gmm")" >> "$data/feature_opts"
echo "$0: made features of $(wc -l < "$data/feats.scp") utterances of $data" >&2
