#!/usr/bin/env bash
# Train a support vector machine on Kaldi features and alignments; heldout frames choose, then it is trained on all.
# Usage: steps/train_svm.sh [options] <data-tr> <data-cv> <lang> <ali-tr> <ali-cv> <exp>
# e.g.: steps/train_svm.sh --kernel "arccos1 o arccos0" data/train data/heldout data/lang exp/ali_train exp/ali_heldout exp/svm
# The kernel matrix of all frames, unless it is linear, is held in memory: 1.3 GiB for 12,000. scikit-learn is needed.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

kernel=arccos1                  # or arccos0, arccos2, gaussian, linear, or layers, read outside in: "arccos1 o arccos0"
bandwidth=1                     # multiples of the median distance of random frames; several to choose from
penalty="0.1 1 10 100 1000"     # C times the variance in the kernel's feature space; several to choose from
. "$root/utils/training.sh"     # the options that every kind of model has

parse_options "$@"
usage 6
train svm --kernel "$kernel" --bandwidth "$bandwidth" --penalty "$penalty"
end_training
