# shellcheck shell=bash
# shellcheck disable=SC2154  # stop_stage is run.sh's
# Numbered stages of a recipe. Sourced by run.sh once its options are parsed; reads `stage` and `stop_stage`.

((${stage:-0} <= stop_stage)) || die "--stop-stage $stop_stage is below --stage ${stage:-0}: there is nothing to run"

stage() {  # stage N TITLE: is stage N to be run?
    (($1 >= ${stage:-0} && $1 <= stop_stage)) || return 1
    echo "$0: stage $1: $2" >&2
}

once() {  # once --in FILE … --out FILE … -- COMMAND …: run it unless what it makes is current, or a --stage was asked for
    kernelam once ${stage:+--force} "$@"
}

# Stages that recipes share. They read `nj`, `decode_cmd`, `graph`; the folder of the `sets` that are decoded, data unless
# it is set; where features lie outside of it, their `archives`; and, where lattices are to be rescored, what stands behind
# the names of the decode directories of the first `pass`.

decode_once() {  # decode_once DIR SET OPTIONS…: lattices of SET by the model in DIR, unless they are current
    local dir=$1 set=$2 data=${sets:-data}/$2 file inputs=()
    shift 2
    for file in "$data"/{feats.scp,cmvn.scp,utt2spk,data} "$dir"/{model.json,model.safetensors,ali_train_pdf.counts,final.mdl} \
        "$dir"/{cmvn_opts,delta_opts} "${archives[@]}"; do
        [[ ! -e $file ]] || inputs+=("--in=$file")
    done
    once "${inputs[@]}" --in="$graph" --out="$dir/decode_$set${pass:-}" -- \
        steps/decode.sh --nj "$nj" --cmd "$decode_cmd" --skip-scoring true "$@" "$graph" "$data" "$dir/decode_$set${pass:-}"
}

rescore_once() {  # rescore_once DIR SET OLD NEW: lattices of the first pass with another language model
    local dir=$1 set=$2 old=$3 new=$4 lattices=("$1/decode_$2$pass"/lat.*.gz)
    once "${lattices[@]/#/--in=}" --in={"$old","$new"}/{G.fst,words.txt} --out="$dir/decode_$set" -- \
        steps/lmrescore.sh --cmd "$decode_cmd" --skip-scoring true "$old" "$new" "data/$set" "$dir/decode_$set$pass" "$dir/decode_$set"
}

score_once() {  # score_once DIR TUNED TESTED OPTIONS…: weights tuned on a set and applied to another
    local dir=$1 tuned=$2 tested=$3 set lattices tuning file references
    shift 3
    for set in "$tuned" "$tested"; do
        lattices=("$dir/decode_$set"/lat.*.gz) tuning=() references=()
        for file in "data/$set"/{text,stm,glm}; do [[ ! -e $file ]] || references+=("--in=$file"); done
        [[ $set == "$tuned" ]] || tuning=("--in=$dir/decode_$tuned/scoring_kaldi/best_wer")
        once --in="$dir/decode_$set/num_jobs" "${lattices[@]/#/--in=}" "${tuning[@]}" "${references[@]}" \
            --out="$dir/decode_$set/scoring_kaldi" -- \
            steps/score.sh --cmd "$decode_cmd" "$@" ${tuning:+--tuned-on "$dir/decode_$tuned"} \
            "data/$set" "$graph" "$dir/decode_$set"
    done
}

# From sound to features and from text to language; the functions read `train_cmd` besides, `mfcc_config`, conf/mfcc.conf
# unless it is set, and more `mfcc_opts`.

mfcc_once() {  # mfcc_once SET SOUND…: MFCC of data/SET, whose sound is in the folders SOUND, and CMVN statistics
    local features=data/$1/data/raw_mfcc_$1.ark sounds=("${@:2}")
    once --in=data/"$1"/{wav.scp,utt2spk} "${sounds[@]/#/--in=}" --in="${mfcc_config:=conf/mfcc.conf}" \
        --out=data/"$1"/{feats.scp,utt2num_frames,utt2dur,frame_shift} --out="$features" -- \
        steps/make_mfcc.sh --mfcc-config "$mfcc_config" --nj "$nj" --cmd "$train_cmd" "${mfcc_opts[@]}" "data/$1"
    once --in=data/"$1"/{feats.scp,utt2spk} --in="$features" --out=data/"$1"/cmvn.scp --out="data/$1/data/cmvn_$1.ark" -- \
        steps/compute_cmvn_stats.sh --cmd "$train_cmd" "data/$1"
}

# language_once ORDER UNKNOWN OPTIONS…: data/lang of data/local/dict, data/lang_test with an LM of the training text
language_once() {
    local order=$1 unknown=$2 lm=data/local/lm/$1gram.arpa.gz
    shift 2
    once --in=data/local/dict --out=data/lang -- \
        utils/prepare_lang.sh "$@" data/local/dict "$unknown" data/local/lang data/lang
    _estimate_once "$order" data/train/text "${order}gram"
    once --in=data/lang --in="$lm" --out=data/lang_test -- utils/format_lm.sh data/lang "$lm" data/lang_test
}

_estimate_once() {  # _estimate_once ORDER TEXT NAME OPTIONS…: data/local/lm/NAME.arpa.gz
    local order=$1 text=$2 lm=data/local/lm/$3.arpa.gz
    shift 3
    once --in="$text" --in=data/lang/words.txt --out="$lm" -- \
        kernelam lm estimate --order "$order" --vocab data/lang/words.txt "$@" "$text" "$lm"
}

# large_language_once ORDER UNKNOWN THRESHOLD: data/lang of data/local/dict; data/lang_full with an LM of the training text,
# mixed with one of data/local/text, if there is any, by weights that heldout tunes; data/lang_test with what pruning leaves
large_language_once() {
    local order=$1 unknown=$2 threshold=$3 lm=data/local/lm
    once --in=data/local/dict --out=data/lang -- \
        utils/prepare_lang.sh data/local/dict "$unknown" data/local/lang data/lang
    if [[ ! -s data/local/text ]]; then
        _estimate_once "$order" data/train/text full
    else
        _estimate_once "$order" data/train/text transcripts
        _estimate_once "$order" data/local/text text --skip-first-field false
        once --in=$lm/{transcripts,text}.arpa.gz --in=data/heldout/text --out=$lm/full.arpa.gz -- \
            kernelam lm interpolate --tune data/heldout/text --output $lm/full.arpa.gz $lm/{transcripts,text}.arpa.gz
    fi
    once --in=$lm/full.arpa.gz --out=$lm/pruned.arpa.gz -- \
        kernelam lm prune --threshold "$threshold" $lm/full.arpa.gz $lm/pruned.arpa.gz
    once --in=data/lang --in=$lm/pruned.arpa.gz --out=data/lang_test -- \
        utils/format_lm.sh data/lang $lm/pruned.arpa.gz data/lang_test
    once --in=data/lang --in=$lm/full.arpa.gz --out=data/lang_full -- \
        utils/format_lm.sh data/lang $lm/full.arpa.gz data/lang_full
}

# From features to labels: GMMs of phones, of phones in context, with LDA and MLLT, adapted to speakers. The functions read
# `train_cmd` and `seed` besides, and options of all GMMs in `em`; sets are train, heldout and those that are `decoded`, dev
# and test unless it is set; language is data/lang and data/lang_test.

_gmm_files() {  # _gmm_files DIR: --in=FILE for each file of a GMM and of what makes its features
    local file
    for file in "$1"/{final.mdl,tree,phones.txt,cmvn_opts,delta_opts,splice_opts,final.mat,final.alimdl}; do
        [[ ! -e $file ]] || echo "--in=$file"
    done
}

train_gmm_once() {  # train_gmm_once SCRIPT DIR ALI ARGUMENTS…: the model DIR, by the alignments ALI if there are any
    local script=$1 dir=$2 ali=$3 more=()
    shift 3
    [[ $script != train_lda_mllt.sh ]] || more=("$dir"/{splice_opts,final.mat})
    [[ $script != train_sat.sh ]] || more=("$dir"/{final.alimdl,trans.1})
    once --in=data/train/{feats.scp,cmvn.scp,utt2spk,text,data} --in=data/lang ${ali:+--in="$ali"} \
        --out="$dir"/{final.mdl,tree,phones.txt,cmvn_opts,model.json} "${more[@]/#/--out=}" -- \
        "steps/$script" --nj "$nj" --cmd "$train_cmd" --seed "$seed" "$@" data/train data/lang ${ali:+"$ali"} "$dir"
}

align_once() {  # align_once SCRIPT SET DIR ALI
    local files
    mapfile -t files < <(_gmm_files "$3")
    once --in=data/"$2"/{feats.scp,cmvn.scp,utt2spk,text,data} --in=data/lang "${files[@]}" --out="$4" -- \
        "steps/$1" --nj "$nj" --cmd "$train_cmd" "data/$2" data/lang "$3" "$4"
}

# gmm_ladder MONO LEAVES GAUSSIANS OPTIONS…: exp/{mono,tri1,tri2,tri3} and exp/tri3_ali_{train,heldout}; options of all trees
gmm_ladder() {
    local set options=("${em[@]}" "${@:4}")
    train_gmm_once train_mono.sh exp/mono "" "${em[@]}" --totgauss "$1"
    align_once align_si.sh train exp/mono exp/mono_ali_train
    train_gmm_once train_deltas.sh exp/tri1 exp/mono_ali_train "${options[@]}" "$2" "$3"
    align_once align_si.sh train exp/tri1 exp/tri1_ali
    train_gmm_once train_lda_mllt.sh exp/tri2 exp/tri1_ali "${options[@]}" "$2" "$3"
    align_once align_si.sh train exp/tri2 exp/tri2_ali
    train_gmm_once train_sat.sh exp/tri3 exp/tri2_ali "${options[@]}" "$2" "$3"
    for set in train heldout; do align_once align_fmllr.sh $set exp/tri3 exp/tri3_ali_$set; done
}

adapted_features() {  # adapted_features OPTIONS…: the graph; sets decoded by exp/tri3; all sets in data-fmllr
    local set files transforms found tested
    read -ra tested <<< "${decoded:-dev test}"
    once --in=data/lang_test --in=exp/tri3/{final.mdl,tree,phones.txt} --out="$graph" -- \
        utils/mkgraph.sh data/lang_test exp/tri3 "$graph"
    mapfile -t files < <(_gmm_files exp/tri3)
    for set in "${tested[@]}"; do
        once --in="data/$set"/{feats.scp,cmvn.scp,utt2spk,data} "${files[@]}" --in="$graph" --out="exp/tri3/decode_$set${pass:-}" -- \
            steps/decode_fmllr.sh --nj "$nj" --cmd "$decode_cmd" --skip-scoring true "$@" "$graph" "data/$set" "exp/tri3/decode_$set${pass:-}"
    done
    while read -r set; do
        transforms=exp/tri3/decode_$set${pass:-}
        [[ -e $transforms ]] || transforms=exp/tri3_ali_$set
        found=("$transforms"/trans.*)
        once --in="data/$set"/{feats.scp,cmvn.scp,utt2spk,text,data} "${files[@]}" "${found[@]/#/--in=}" --out="data-fmllr/$set" -- \
            steps/make_fmllr_feats.sh --cmd "$train_cmd" --transform-dir "$transforms" "data-fmllr/$set" "data/$set" exp/tri3
    done < <(printf '%s\n' train heldout "${tested[@]}" | sort -u)
}

# Systems of a recipe: conf/<size>.sh has functions that call `system` for each of them. The functions read `cuda_cmd` and
# `device` besides, `ali`, what the names of alignments end in, and `splice`, 5 unless it is set; they fill `models`.

models=() training=false

system() {  # system NAME SCRIPT OPTIONS…: counted among the models, and trained if `training`
    local dir=exp/$1 script=$2
    shift 2
    models+=("$dir")
    ! $training || once --in=data-fmllr/{train,heldout} --in=data/lang --in=exp/tri3_ali_{train,heldout}"${ali:-}" \
        --out="$dir"/{model.safetensors,ali_train_pdf.counts,final.mdl,tree,phones.txt,model.json} -- \
        "steps/$script" --cmd "$cuda_cmd" --device "$device" --seed "$seed" --splice "${splice:-5}" "$@" \
        data-fmllr/train data-fmllr/heldout data/lang exp/tri3_ali_{train,heldout}"${ali:-}" "$dir"
}

papers() {  # papers STAGE FUNCTION TITLE: the systems of a function of conf/<size>.sh
    training=false
    ! stage "$1" "$3" || training=true
    "$2"
}

combine_once() {  # combine_once STAGE DIR MODEL MODEL: one model of two
    local dir=$2
    models+=("$dir")
    stage "$1" "combination: a kernel model and a DNN" || return 0
    once --in=data-fmllr/heldout --in=exp/tri3_ali_heldout"${ali:-}" --in={"$3","$4"}/model.{json,safetensors} \
        --out="$dir"/{model.json,model.safetensors} -- \
        steps/combine.sh --cmd "$cuda_cmd" --device "$device" data-fmllr/heldout data/lang exp/tri3_ali_heldout"${ali:-}" \
        "$3" "$4" "$dir"
}
