#!/usr/bin/env bash
# Train a kernel acoustic model on Kaldi features and alignments.
# Usage: steps/train_kernel.sh [options] <data-tr> <data-cv> <lang> <ali-tr> <ali-cv> <exp>
# e.g.: steps/train_kernel.sh data/train data/heldout data/lang exp/tri3_ali exp/tri3_ali_heldout exp/kernel
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

kernel=gaussian                 # gaussian, laplacian, sparse-gaussian, arccos0|1|2, or e.g. "gaussian o pca:50 o laplacian"
bandwidth=1                     # 2σ² (of laplacian 1/λ) as multiples of the median squared (ℓ1) distance: "0.5 1 2" to choose from
num_features=25000              # random features D
sampling=paired                 # cosines and sines of the same frequencies; independent; orthogonal
bottleneck=0                    # rank of the output matrix; 0 trains it whole
selection=                      # rounds of feature selection, or how many features to keep in each
selection_frames=1000000        # frames that each round passes over
features_of=                    # a kernel model whose random features to take instead, e.g. those it selected
precondition=0                  # leading directions of the features to damp, so that rates can be higher: 32
optimiser=sgd                   # or sag, stochastic average gradient
sag_table=single                # precision of what sag remembers: single or half
blocks=1                        # parts of the features trained as jobs of their own, then averaged into one model
rates="8 16 32"                 # learning rates to choose from on heldout frames
. "$root/utils/descent.sh"      # the options of models that are fitted by their gradient
. "$root/utils/training.sh"     # and of all

parse_options "$@"
usage 6
part=()
((blocks == 1)) || part=(--blocks "$blocks" --block JOB)
descend kernel --kernel "$kernel" --bandwidth "$bandwidth" --num-features "$num_features" --sampling "$sampling" \
    --bottleneck "$bottleneck" --selection "$selection" --selection-frames "$selection_frames" \
    --features-of "$features_of" --precondition "$precondition" --optimiser "$optimiser" --sag-table "$sag_table" "${part[@]}"
if ((blocks > 1)); then
    mapfile -t parts < <(seq -f "${args[5]}/block.%.0f" "$blocks")
    $cmd --num-threads "$num_threads" "${args[5]}/log/join.log" kernelam combine --blocks true --device "$device" \
        "${args[1]}" "${args[2]}" "${args[4]}" "${parts[@]}" "${args[5]}"
    warnings "${args[5]}/log/join.log"
fi
end_training
