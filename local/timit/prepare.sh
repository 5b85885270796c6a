#!/usr/bin/env bash
# Data directories, dictionary and phone times of TIMIT (LDC93S1), in upper or lower case, SPHERE or RIFF.
# Usage: local/timit/prepare.sh [--units 48|49] <corpus> <data>
# e.g.: local/timit/prepare.sh /corpora/LDC93S1 data
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

pass_on 2 "$@"
become timit/timit_corpus.py "$@"
