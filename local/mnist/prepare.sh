#!/usr/bin/env bash
# Images as Kaldi directories: <data>/{train,heldout,test,lang} and <ali>_{train,heldout,test}.
# Usage: local/mnist/prepare.sh [--task <task>] [--corpus <dir>] [--binary] <data> <ali>
# Tasks: digits, mnist, cifar, and the look-alikes rectangles, convex, back-rand, back-image
# e.g.: local/mnist/prepare.sh --task mnist --corpus /corpora/mnist data exp/ali
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

pass_on 2 "$@"
become mnist/prepare.py "$@"
