#!/usr/bin/env bash
# Synthetic speech in the folders, file formats and names of TIMIT, for tests and for trying the recipe without it.
# Usage: local/timit/make_lookalike.sh [--nj <n>] [--speakers <n>] <corpus>
# e.g.: local/timit/make_lookalike.sh --speakers 16 corpus
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

pass_on 1 "$@"
. "$root/path.sh" local/mini/requirements.txt
become timit/timit_lookalike.py "$@"
