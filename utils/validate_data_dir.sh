#!/usr/bin/env bash
# Check a data directory: every table sorted in C order, without duplicates, well-formed, and about the same utterances,
# speakers and recordings. Stops with status 1 at the first thing that is wrong, and says what repairs it.
# Usage: utils/validate_data_dir.sh [--no-feats] [--no-text] [--no-wav] [--no-spk-sort] <data>
# e.g.: utils/validate_data_dir.sh --no-feats data/train
# --no-feats, --no-text, --no-wav: that file may be missing; if it is there, it is checked
# --no-spk-sort: utt2spk need not be sorted by speaker
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/script.sh"

pass_on 1 "$@"
exec kernelam validate "$@"
