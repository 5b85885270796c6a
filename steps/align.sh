#!/usr/bin/env bash
# Align a data directory with any trained model: kernel, DNN or GMM.
# Usage: steps/align.sh [options] <data> <lang> <model-dir> <ali-dir>
# Alignment is exact: Kaldi's --beam and --retry-beam are accepted and have no effect.
# e.g.: steps/align.sh --nj 4 data/train data/lang exp/kernel exp/kernel_ali
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"

nj=4                            # jobs
cmd=run_local.sh                # where they run
scale_opts="--transition-scale=1.0 --acoustic-scale=0.1 --self-loop-scale=0.1"  # scales of log-probabilities
boost_silence=1.0               # factor on the likelihoods of optional silence
model=                          # a file of <model-dir> instead of its final.mdl, such as final.alimdl
transform_dir=                  # fMLLR transforms of the speakers, trans.*, of a model that takes them
device=cpu                      # cpu or cuda
beam=10                         # no effect
retry_beam=40                   # no effect

parse_options "$@"
usage 4
set -- "${args[@]}"
data=$1 lang=$2 src=$3 dir=$4
: "$beam" "$retry_beam"

need "$data/feats.scp" "$data/text" "$lang/L.fst" "$lang/phones.txt" "$src/final.mdl" "$src/tree" ${model:+"$model"}
[[ ! $dir -ef $src ]] || die "$dir is the model's own directory; align into another one"
[[ ! $dir -ef $transform_dir ]] || die "$dir is the directory of the transforms; align into another one"
no_model_in "$dir" model.json
new=$dir/.new  # what an earlier run made stays until all of this one is there
mkdir -p "$dir/log"
alone_in "$dir"
trap 'rm -rf "$new"' EXIT
rm -rf "$new" "$dir"/split*utt
mkdir "$new"
kernelam data split --per-utt --dest "$dir" "$data" "$nj"
cp "$lang/phones.txt" "$new"
own=(final.mdl tree phones.txt cmvn_opts delta_opts splice_opts final.mat)
for name in "${own[@]}"; do
    [[ ! -e $src/$name ]] || cp "$src/$name" "$new/$name"
done
if [[ -n $transform_dir ]]; then  # all into the first: they are of as many jobs as estimated them
    jobs=$(jobs_of "$transform_dir")
    for ((job = 1; job <= nj; job++)); do : > "$new/trans.$job"; done
    for ((job = 1; job <= jobs; job++)); do cat "$transform_dir/trans.$job" >> "$new/trans.1"; done
fi
# shellcheck disable=SC2086  # several words
$cmd JOB=1:"$nj" "$dir/log/align.JOB.log" \
    kernelam align $scale_opts --boost-silence "$boost_silence" --device "$device" \
    ${transform_dir:+--transform-dir "$transform_dir"} "${model:-$src}" "$dir/split${nj}utt/JOB" "$lang" "$new/ali.JOB.gz"
for ((job = 1; job <= nj; job++)); do warnings "$dir/log/align.$job.log"; done
rm -f "$dir"/num_jobs "$dir"/ali.*.gz "$dir"/trans.* "${own[@]/#/$dir/}"
publish "$new" "$dir"
echo "$nj" > "$dir/num_jobs"
echo "$0: aligned $data, alignments in $dir" >&2
