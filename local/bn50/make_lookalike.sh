#!/usr/bin/env bash
# Synthetic speech in the folders, file formats and names of Broadcast News, for tests and for trying the recipe.
# Usage: local/bn50/make_lookalike.sh [--nj <n>] [--shows <n>] <corpus>
# e.g.: local/bn50/make_lookalike.sh --shows 12 corpus
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

pass_on 1 "$@"
. "$root/path.sh" local/mini/requirements.txt
become bn50/bn_lookalike.py "$@"
