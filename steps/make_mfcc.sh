#!/usr/bin/env bash
# Compute MFCC features of a data directory: feats.scp, utt2num_frames, utt2dur, frame_shift.
# Usage: steps/make_mfcc.sh [options] <data> [<logdir> [<mfccdir>]]
# <logdir> is <data>/log, <mfccdir> is <data>/data unless given.
# e.g.: steps/make_mfcc.sh --nj 4 data/train exp/make_mfcc/train mfcc
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

nj=4                           # number of jobs
cmd=run_local.sh               # where jobs run; Kaldi's run.pl, queue.pl, slurm.pl serve too
mfcc_config=conf/mfcc.conf     # Kaldi's options, one --name=value a line
compress=true                  # one byte a number instead of four
write_utt2num_frames=true      # write <data>/utt2num_frames

parse_options "$@"
usage 1 3

exec "$root/steps/make_features.sh" --nj "$nj" --cmd "$cmd" --compress "$compress" \
    --write-utt2num-frames "$write_utt2num_frames" mfcc "$mfcc_config" "${args[@]}"
