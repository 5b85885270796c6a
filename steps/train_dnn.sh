#!/usr/bin/env bash
# Train a feed-forward network on Kaldi features and alignments.
# Usage: steps/train_dnn.sh [options] <data-tr> <data-cv> <lang> <ali-tr> <ali-cv> <exp>
# e.g.: steps/train_dnn.sh data/train data/heldout data/lang exp/tri3_ali exp/tri3_ali_heldout exp/dnn
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

layers=4                        # hidden layers
width=1000                      # units in each
activation=tanh                 # or sigmoid, relu
bottleneck=0                    # rank of the output matrix; 0 trains it whole
normalise=false                 # each layer, over its units, before the activation
dropout=0                       # share of the hidden units left out in training; or several to choose from
pretraining=discriminative      # an epoch of each shallower network; rbm: contrastive divergence; or none
rbm_epochs=5                    # of contrastive divergence, for each layer
optimiser=sgd                   # or adamw
momentum=0                      # of sgd; or several to choose from
rates=                          # learning rates to choose from on heldout frames: 0.05 0.1 0.2, of adamw 0.001 0.002 0.004
. "$root/utils/descent.sh"      # the options of models that are fitted by their gradient
. "$root/utils/training.sh"     # and of all

parse_options "$@"
usage 6
descend dnn --layers "$layers" --width "$width" --activation "$activation" --bottleneck "$bottleneck" \
    --normalise "$normalise" --dropout "$dropout" --pretraining "$pretraining" --rbm-epochs "$rbm_epochs" \
    --optimiser "$optimiser" --momentum "$momentum"
end_training
