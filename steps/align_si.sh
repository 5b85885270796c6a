#!/usr/bin/env bash
# Align a data directory with a GMM: Kaldi's name for steps/align.sh, whose options it takes.
# Usage: steps/align_si.sh [options] <data> <lang> <model-dir> <ali-dir>
set -euo pipefail
exec "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/align.sh" "$@"
