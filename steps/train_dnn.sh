#!/usr/bin/env bash
# Train a feed-forward network of tanh units on Kaldi features and alignments.
# Usage: steps/train_dnn.sh [options] <data-tr> <data-cv> <lang> <ali-tr> <ali-cv> <exp>
# e.g.: steps/train_dnn.sh data/train data/heldout data/lang exp/tri3_ali exp/tri3_ali_heldout exp/dnn
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

layers=4                        # hidden layers
width=1000                      # units in each
rates="0.05 0.1 0.2"            # learning rates to choose from on heldout frames
. "$root/utils/training.sh"     # the options that every kind of model has

parse_options "$@"
usage 6
train dnn --layers "$layers" --width "$width"
echo "$0: trained ${args[5]}" >&2
