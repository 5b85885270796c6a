#!/usr/bin/env bash
# Compute MFCC features of a data directory: feats.scp, utt2num_frames, utt2dur, frame_shift.
# Usage: steps/make_mfcc.sh [options] <data> [<logdir> [<mfccdir>]]
# <logdir> is <data>/log, <mfccdir> is <data>/data unless given.
# e.g.: steps/make_mfcc.sh --nj 4 data/train exp/make_mfcc/train mfcc
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

mfcc_config=conf/mfcc.conf     # Kaldi's options, one --name=value a line
. "$root/utils/features.sh"    # the options that every kind of features has

parse_options "$@"
usage 1 3
make_features mfcc "$mfcc_config"
