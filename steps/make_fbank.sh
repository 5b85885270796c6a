#!/usr/bin/env bash
# Compute log-mel filterbank features of a data directory: feats.scp, utt2num_frames, utt2dur, frame_shift.
# Usage: steps/make_fbank.sh [options] <data> [<logdir> [<fbankdir>]]
# <logdir> is <data>/log, <fbankdir> is <data>/data unless given.
# e.g.: steps/make_fbank.sh --nj 4 data/train exp/make_fbank/train fbank
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

nj=4                           # number of jobs
cmd=run_local.sh               # where jobs run; Kaldi's run.pl, queue.pl, slurm.pl serve too
fbank_config=conf/fbank.conf   # Kaldi's options, one --name=value a line
compress=true                  # one byte a number instead of four
write_utt2num_frames=true      # write <data>/utt2num_frames

parse_options "$@"
usage 1 3

exec "$root/steps/make_features.sh" --nj "$nj" --cmd "$cmd" --compress "$compress" \
    --write-utt2num-frames "$write_utt2num_frames" fbank "$fbank_config" "${args[@]}"
