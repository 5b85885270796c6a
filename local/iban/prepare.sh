#!/usr/bin/env bash
# Data directories, dictionary and text of the Iban radio news corpus (OpenSLR 24).
# Usage: local/iban/prepare.sh <corpus> <data>
# e.g.: local/iban/prepare.sh /corpora/iban data
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

pass_on 2 "$@"
become iban/iban_corpus.py "$@"
