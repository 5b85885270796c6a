# shellcheck shell=bash
# Where jobs run. utils/run_slurm.sh, or Kaldi's run.pl, queue.pl and slurm.pl, are called in the same way.
export train_cmd=utils/run_local.sh
export decode_cmd=utils/run_local.sh
export cuda_cmd=utils/run_local.sh
