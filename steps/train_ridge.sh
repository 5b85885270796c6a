#!/usr/bin/env bash
# Train an acoustic model by ridge regression on random features, one class against one, on Kaldi features and alignments.
# Usage: steps/train_ridge.sh [options] <data-tr> <data-cv> <lang> <ali-tr> <ali-cv> <exp>
# e.g.: steps/train_ridge.sh --nj 8 data/train data/heldout data/lang exp/mono_ali exp/mono_ali_heldout exp/ridge
# The sums over frames are jobs of one thread each, whose number does not change the model; solving the systems and all
# else is one job. A run that was interrupted resumes where it was.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

kernel=gaussian                 # gaussian, laplacian, sparse-gaussian, arccos0|1|2, or e.g. "gaussian o pca:50 o laplacian"
bandwidth=1                     # 2σ² (of laplacian 1/λ) as a multiple of the median squared (ℓ1) distance of random frames
num_features=5000               # random features D
sampling=paired                 # cosines and sines of the same frequencies; independent; orthogonal
ridge=0.1                       # λ, or several to choose from on heldout frames: "0.01 0.1 1"
scheme=one-vs-one               # or one-vs-rest
solver=gmres                    # of one-vs-one: gmres, cg or cholesky
tolerance=1e-3                  # of gmres and cg: the residual as a share of the right-hand side; single precision has 1e-6
nj=0                            # jobs for the sums over frames; 0: as many as there are cores, one on a GPU
. "$root/utils/training.sh"     # the options that every kind of model has; the threads are those of the systems

parse_options "$@"
usage 6
begin_training
((nj > 0)) || nj=$([[ $device == cpu ]] && cores || echo 1)
train=(kernelam train ridge --kernel "$kernel" --bandwidth "$bandwidth" --num-features "$num_features"
    --sampling "$sampling" --ridge "$ridge" --scheme "$scheme" --solver "$solver" --tolerance "$tolerance" "${inputs[@]}")
keep_logs "$dir"/log/{prepare,train}.log "$dir"/log/sums.[0-9]*.log
$cmd "$dir/log/prepare.log" "${train[@]}" --part prepare "${args[@]}"
awk '/^warning: | systems: /' < "$dir/log/prepare.log" >&2  # and what it will take
$cmd JOB=1:"$nj" "$dir/log/sums.JOB.log" "${train[@]}" --part sums --job JOB --jobs "$nj" "${args[@]}"
$cmd --num-threads "$num_threads" "$dir/log/train.log" "${train[@]}" "${args[@]}"
awk 'NR == FNR { told[$0] } NR > FNR && (/^ridge / || /^warning: / && !($0 in told))' \
    <(cat "$dir/log/prepare.log") - < "$dir/log/train.log" >&2
end_training
