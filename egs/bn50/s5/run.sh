#!/usr/bin/env bash
# Broadcast News, 50 hours, from sound to word error rates by STM: GMMs, and the systems of may2017 on their labels.
# Usage: ./run.sh --corpus <dirs> [options]
# e.g.: ./run.sh --corpus "/ldc/LDC97S44 /ldc/LDC98S71" --transcripts "/ldc/LDC97T22 /ldc/LDC98T28" --shows bn50.list \
#           --dev /ldc/dev04f --test /ldc/rt03 --lexicon cmudict-0.7b --glm en20030506.glm --size papers --device cuda
# Without --stage, what is up to date is skipped; with it, everything from that stage on is done again.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/utils/options.sh"

stage=            # the first stage to run, even if its results are up to date
stop_stage=10     # the last stage to run
nj=2              # parallel jobs; results do not depend on it
corpus=           # folders of the sound; what follows is looked for there if it is not named
transcripts=      # folders of the training shows' transcripts: SGML or STM
shows=            # a file of the shows to train on, one a line; otherwise every show found
dev=              # folders with the sound and STM files of Dev04f; otherwise dev04… in the corpus
test=             # the same of RT-03; otherwise rt03…
lexicon=          # pronunciations in CMUdict's layout; otherwise lexicon… or cmudict…
glm=              # mapping rules for scoring; otherwise a file of that ending, if there is one
text=             # files of more text for the language model; otherwise text.txt, if there is one
size=laptop       # of all systems, as conf/<size>.sh has it: papers, laptop, or lookalike
device=cpu        # where models are trained: cpu or cuda
seed=1            # of the models

parse_options "$@"
usage 0
_places() {  # _places NAME…: paths from the root
    local name
    for name in "$@"; do
        [[ -e $name ]] || die "no such file or directory $name"
        readlink -f "$name"
    done | paste -sd' '
}
for _name in corpus transcripts shows dev test lexicon glm text; do
    read -ra _given <<< "${!_name}"
    _place=$(_places "${_given[@]}")
    printf -v "$_name" %s "$_place"
done
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
[[ -n $corpus ]] || die "--corpus is needed: the folders of LDC97S44 and LDC98S71; local/bn50/make_lookalike.sh makes one to try this with"
[[ -e conf/$size.sh ]] || die "--size is papers, laptop or lookalike, not $size"
. ./path.sh
. ./cmd.sh
. utils/stages.sh
# shellcheck source=conf/laptop.sh
. "conf/$size.sh"
# shellcheck disable=SC2034  # read by the stages
graph=exp/tri3/graph sets=data-fmllr archives=() pass=_first ali='' splice=4
read -ra sound <<< "$corpus $dev $test"

if stage 0 "corpus: data directories and dictionary"; then
    given=()
    for name in transcripts shows dev test lexicon glm text; do [[ -z ${!name} ]] || given+=("--$name" "${!name}"); done
    read -ra inputs <<< "$corpus $transcripts $shows $dev $test $lexicon $glm $text"
    once "${inputs[@]/#/--in=}" --in=local/bn50 --out=data/local/{dict,text} \
        --out=data/{train,heldout,dev,test}/{wav.scp,segments,text,utt2spk,spk2utt,stm,reco2file_and_channel} -- \
        local/bn50/prepare.sh "${given[@]}" "$corpus" data
fi

if stage 1 "features: MFCC, and CMVN statistics of each speaker in each show"; then
    for x in train heldout dev test; do mfcc_once $x "${sound[@]}"; done
fi

if stage 2 "language: a 4-gram of transcripts and other text, and what of it remains for the first pass"; then
    large_language_once 4 "<UNK>" "$threshold"
fi

if stage 3 "labels: GMMs of phones, of phones in context, with LDA and MLLT, and adapted to speakers"; then
    gmm_ladder "${gmms[@]}"
fi

if stage 4 "graph: HCLG; features: adapted to each speaker, those of dev and test by decoding them"; then
    adapted_features --acwt 0.1 "${search[@]}"
fi

papers 5 kernels "may2017: random Fourier features with bottlenecks, and feature selection"
papers 6 networks "the DNNs of may2017"
combine_once 7 exp/combination "${combined[@]}"

if stage 8 "decode: lattices of dev and test with the pruned language model"; then
    for dir in "${models[@]}"; do
        for x in dev test; do decode_once "$dir" $x --acwt "$acwt" "${search[@]}"; done
    done
fi

if stage 9 "the whole language model in their lattices; scores by STM, weights tuned on dev, applied to test"; then
    for dir in exp/tri3 "${models[@]}"; do
        for x in dev test; do rescore_once "$dir" $x data/lang_{test,full}; done
        score_once "$dir" dev test --stm true "${lmwts[@]}"
    done
fi

if stage 10 "report"; then
    published=(--corpus bn50)
    [[ $size != lookalike ]] || published=()  # which are of another corpus
    kernelam report --title "Broadcast News" "${published[@]}" --baseline exp/tri3 --output RESULTS.md exp/tri3 "${models[@]}"
    cat RESULTS.md
fi
