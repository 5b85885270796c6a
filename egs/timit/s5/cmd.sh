# shellcheck shell=bash
# Where jobs run: run_local.sh, on this machine, or run_slurm.sh, e.g. "run_slurm.sh --mem 4G --partition fast". Kaldi's
# run.pl, queue.pl and slurm.pl are called in the same way. path.sh puts the first two on the PATH.
export train_cmd=run_local.sh
export decode_cmd=run_local.sh
export cuda_cmd=run_local.sh
