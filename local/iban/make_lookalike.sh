#!/usr/bin/env bash
# Synthetic speech in the folders, file formats and names of the Iban radio news corpus, for tests and for trying the recipe.
# Usage: local/iban/make_lookalike.sh [--nj <n>] [--utterances <n>] <corpus>
# e.g.: local/iban/make_lookalike.sh corpus
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

pass_on 1 "$@"
. "$root/path.sh" local/mini/requirements.txt
become iban/iban_lookalike.py "$@"
