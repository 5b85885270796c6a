#!/usr/bin/env bash
# Train a kernel acoustic model on Kaldi features and alignments.
# Usage: steps/train_kernel.sh [options] <data-tr> <data-cv> <lang> <ali-tr> <ali-cv> <exp>
# e.g.: steps/train_kernel.sh data/train data/heldout data/lang exp/tri3_ali exp/tri3_ali_heldout exp/kernel
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

kernel=gaussian                 # the kernel
bandwidth=1.0                   # 2σ² as a multiple of the median squared distance of random frames
num_features=25000              # random features D
bottleneck=0                    # rank of the output matrix; 0 trains it whole
rates="8 16 32"                 # learning rates to choose from on heldout frames
. "$root/utils/training.sh"     # the options that every kind of model has

parse_options "$@"
usage 6
train kernel --kernel "$kernel" --bandwidth "$bandwidth" --num-features "$num_features" --bottleneck "$bottleneck"
