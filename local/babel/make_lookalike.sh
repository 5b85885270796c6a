#!/usr/bin/env bash
# Synthetic speech in the folders, file formats and names of a Babel language pack, for tests and for trying the recipe.
# Usage: local/babel/make_lookalike.sh [--nj <n>] [--language bengali|cantonese] [--conversations <n>] <corpus>
# e.g.: local/babel/make_lookalike.sh --language cantonese corpus
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

pass_on 1 "$@"
. "$root/path.sh" local/mini/requirements.txt
become babel/babel_lookalike.py "$@"
