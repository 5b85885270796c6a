#!/usr/bin/env bash
# Make the synthetic mini corpus with espeak-ng, its Kaldi data directories and its lexicon. It takes about a minute;
# when the corpus is there already, a second. The same seed gives the same bytes, whatever nj.
#
# Usage: local/mini/prepare.sh [options] <corpus-dir> <data-dir>
# e.g.: local/mini/prepare.sh --nj 2 corpus data
#
# Makes <corpus-dir>/{train,heldout,dev,test}/{*.wav,phones.ctm}, <data-dir>/{train,heldout,dev,test} and
# <data-dir>/local/dict.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

nj=2                           # processes at once
seed=1                         # another seed: other sentences, noises and channels
cmd=run_local.sh               # where the job runs

parse_options "$@"
usage 2
set -- "${args[@]}"
corpus=$1 data=$2

export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH}
log=$data/log/prepare.log
mkdir -p "$data/log"
$cmd --num-threads "$nj" "$log" \
    python "$root/local/mini/make_corpus.py" --nj "$nj" --seed "$seed" "$corpus" "$data"
grep -E '^[a-z]+: .* (words|phones)' "$log"
