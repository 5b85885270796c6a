#!/usr/bin/env bash
# Copy a data directory, with a prefix or suffix on its utterance and speaker ids if asked.
# Usage: utils/copy_data_dir.sh [--utt-prefix p] [--spk-prefix p] [--utt-suffix s] [--spk-suffix s] <src> <dest>
# e.g.: utils/copy_data_dir.sh --utt-prefix noisy- --spk-prefix noisy- data/train data/train_noisy
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/script.sh"

pass_on 2 "$@"
exec kernelam data copy "$@"
