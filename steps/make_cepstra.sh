#!/usr/bin/env bash
# Make a data directory with MFCC of one that has log-mel filterbanks, for GMMs, and its CMVN statistics.
# Usage: steps/make_cepstra.sh [options] <fbank-data> <data>
# e.g.: steps/make_cepstra.sh data-fbank/train data/train
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

cmd=run_local.sh               # where the job runs
num_ceps=13                    # numbers a frame
cepstral_lifter=22             # 0: none
compress=true                  # one byte a number instead of four

parse_options "$@"
usage 2
set -- "${args[@]}"
src=$1 data=${2%/}

need "$src/feats.scp" "$src/utt2spk"
[[ ! $data -ef $src ]] || die "$data has the filterbanks; name another directory for the cepstra"
kernelam data copy "$src" "$data"
rm -f "$data"/{feats.scp,cmvn.scp,feature_opts}
$cmd "$data/log/cepstra.log" kernelam features cepstra --num-ceps "$num_ceps" --cepstral-lifter "$cepstral_lifter" \
    --compress "$compress" "$src" "$data" "$data/data/cepstra.ark"
"$root/steps/compute_cmvn_stats.sh" --cmd "$cmd" "$data"
