#!/usr/bin/env bash
# Train a multilayer kernel machine on random frames of Kaldi features and alignments.
# Usage: steps/train_multilayer.sh [options] <data-tr> <data-cv> <lang> <ali-tr> <ali-cv> <exp>
# e.g.: steps/train_multilayer.sh --layers 2 data/train data/heldout data/lang exp/mono_ali exp/mono_ali_cv exp/multilayer
# A run that was interrupted resumes where it was.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

kernel=arccos1                  # of each layer: arccos0, arccos1, arccos2, gaussian, or layers of them: "arccos1 o arccos0"
layers=1                        # of kernel PCA
bandwidth=1                     # multiples of the median distance of random frames; several to choose from in each layer
examples=12000                  # random frames that it is made of
pca_examples=6000               # random ones of these that components are of
components=500                  # of each layer, before uninformative ones are left out
targets=3                       # neighbours of an example that the metric draws near
layers_of=                      # a machine that differs in having fewer layers: these are taken from it, to save time
. "$root/utils/training.sh"     # the options that every kind of model has

parse_options "$@"
usage 6
train multilayer --kernel "$kernel" --layers "$layers" --bandwidth "$bandwidth" --examples "$examples" \
    --pca-examples "$pca_examples" --components "$components" --targets "$targets" \
    --layers-of "$layers_of"
end_training
