# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # rates are the script's own; descent is for it
# The options of models that are fitted by their gradient, sourced above parse_options: steps/train_kernel.sh, train_dnn.sh.

search_frames=100000            # frames that each learning rate is tried on; few favour high rates
schedule=decay                  # rate falls to zero; average: weights of the last epoch averaged; halving: papers' rule
max_epochs=0                    # 0: 20 with halving; 4 otherwise, where those that diverge are done again at half the rate
max_halvings=6                  # of the learning rate; with these training ends too
metric=ce                       # chooses the rate on heldout frames, and halves it: ce, erll[:β], capped[:λ], top-k[:κ]
l2=0                            # half this times the squared weights joins the loss (adamw: weight decay); or several
augment=                        # noise on the inputs: mask:p, noise:s or, of square images, deform:s by s pixels
precision=single                # of matrix products: single, mixed (bfloat16, where a GPU or CPU has it), tf32 (GPU)
ranks=1                         # processes on this machine that share a kernel's features, or a network's batches

descend() {  # descend KIND OPTIONS…: train, with these options too
    train "$@" --rates "$rates" --search-frames "$search_frames" --schedule "$schedule" --max-epochs "$max_epochs" \
        --max-halvings "$max_halvings" --metric "$metric" --l2 "$l2" --augment "$augment" --precision "$precision"
}
