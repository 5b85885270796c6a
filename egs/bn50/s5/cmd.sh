# shellcheck shell=bash
# Where jobs run. Kaldi's run.pl, queue.pl and slurm.pl are called in the same way, with options if need be:
# "queue.pl --mem 4G". path.sh puts run_local.sh on the PATH.
export train_cmd=run_local.sh
export decode_cmd=run_local.sh
export cuda_cmd=run_local.sh
