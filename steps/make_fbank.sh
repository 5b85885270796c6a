#!/usr/bin/env bash
# Compute log-mel filterbank features of a data directory: feats.scp, utt2num_frames, utt2dur, frame_shift.
# Usage: steps/make_fbank.sh [options] <data> [<logdir> [<fbankdir>]]
# <logdir> is <data>/log, <fbankdir> is <data>/data unless given.
# e.g.: steps/make_fbank.sh --nj 4 data/train exp/make_fbank/train fbank
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

fbank_config=conf/fbank.conf   # Kaldi's options, one --name=value a line
. "$root/utils/features.sh"    # the options that every kind of features has

parse_options "$@"
usage 1 3
make_features fbank "$fbank_config"
