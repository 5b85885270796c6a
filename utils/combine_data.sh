#!/usr/bin/env bash
# Join data directories: the files that all of them have. An utterance in two of them is an error.
# Usage: utils/combine_data.sh <dest> <src1> <src2> …
# e.g.: utils/combine_data.sh data/train_all data/train data/train_noisy
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/script.sh"

pass_on 2 "$@"
exec kernelam data combine "$@"
