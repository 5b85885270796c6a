#!/usr/bin/env bash
# Make a data directory of the same speech, faster or slower: more to train on, with utils/combine_data.sh.
# Usage: utils/perturb_data_dir_speed.sh <factor> <src> <dest>
# The sound is changed when it is read; make features of <dest> and CMVN statistics anew.
# e.g.: utils/perturb_data_dir_speed.sh 0.9 data/train data/train_sp0.9
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/script.sh"

pass_on 3 "$@"
exec kernelam data perturb-speed "$@"
