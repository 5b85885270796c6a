#!/usr/bin/env bash
# Keep the utterances that every file of a data directory knows, sort the files in C order, drop repeated lines, rebuild
# spk2utt. What changes is first copied to <data>/.backup. Empty transcripts are kept.
# Usage: utils/fix_data_dir.sh <data>
# e.g.: utils/fix_data_dir.sh data/train
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/script.sh"

pass_on 1 "$@"
exec kernelam data fix "$@"
