#!/usr/bin/env bash
# Train a kernel log-linear model whose basis vectors are searched for, on Kaldi features and alignments.
# Usage: steps/train_pursuit.sh [options] <data-tr> <data-cv> <lang> <ali-tr> <ali-cv> <exp>
# e.g.: steps/train_pursuit.sh --kernel polynomial:2 data/train data/heldout data/lang exp/mono_ali exp/mono_ali_cv exp/pursuit
# A run that was interrupted resumes where it was.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

kernel=gaussian                 # or polynomial:2, polynomial:3; polynomial:1 is linear
bandwidth=1                     # multiples of the median distance of random frames; several to choose from
penalty=1                       # c, that of the squared norm; several to choose from on heldout frames
basis=1000                      # basis vectors in the end
first=10                        # random frames that it begins with
added=10                        # vectors that a round adds
method=orthogonal               # from orthogonalised gradients; joint: all of a round at once; nystrom: random frames
priors=uniform                  # what decoding divides by; counts: shares of the training frames
. "$root/utils/training.sh"     # the options that every kind of model has

parse_options "$@"
usage 6
train pursuit --kernel "$kernel" --bandwidth "$bandwidth" --penalty "$penalty" --basis "$basis" --first "$first" \
    --added "$added" --method "$method" --priors "$priors"
end_training
