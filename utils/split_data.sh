#!/usr/bin/env bash
# Split a data directory for parallel jobs: <data>/split<nj>/{1..nj} by speaker, or with --per-utt
# <data>/split<nj>utt/{1..nj} by utterance. Done again only when a file of <data> has changed.
# Usage: utils/split_data.sh [--per-utt] <data> <nj>
# The steps make the splits they need in their own folders.
# e.g.: utils/split_data.sh data/train 4
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/script.sh"

pass_on 2 "$@"
exec kernelam data split "$@"
