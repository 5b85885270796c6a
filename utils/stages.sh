# shellcheck shell=bash
# shellcheck disable=SC2154  # stop_stage is run.sh's
# Numbered stages of a recipe. Sourced by run.sh once its options are parsed; reads `stage` and `stop_stage`.

((${stage:-0} <= stop_stage)) || die "there is no stage from $stage to $stop_stage"

stage() {  # stage N TITLE: is stage N to be run?
    (($1 >= ${stage:-0} && $1 <= stop_stage)) || return 1
    echo "$0: stage $1: $2" >&2
}

once() {  # once --in FILE … --out FILE … -- COMMAND …: run it unless what it makes is current, or a --stage was asked for
    kernelam once ${stage:+--force} "$@"
}

# Stages that recipes share. They read `nj`, `decode_cmd`, `graph`; the folder of the `sets` that are decoded, data unless
# it is set; and, where features lie outside of it, their `archives`.

decode_once() {  # decode_once DIR SET OPTIONS…: lattices of SET by the model in DIR, unless they are current
    local dir=$1 set=$2 data=${sets:-data}/$2 file inputs=()
    shift 2
    for file in "$data"/{feats.scp,cmvn.scp,utt2spk,data} "$dir"/{model.safetensors,ali_train_pdf.counts,final.mdl} \
        "$dir"/{cmvn_opts,delta_opts} "${archives[@]}"; do
        [[ ! -e $file ]] || inputs+=("--in=$file")
    done
    once "${inputs[@]}" --in="$graph" --out="$dir/decode_$set" -- \
        steps/decode.sh --nj "$nj" --cmd "$decode_cmd" --skip-scoring true "$@" "$graph" "$data" "$dir/decode_$set"
}

score_once() {  # score_once DIR TUNED TESTED OPTIONS…: weights tuned on a set and applied to another
    local dir=$1 tuned=$2 tested=$3 set lattices tuning
    shift 3
    for set in "$tuned" "$tested"; do
        lattices=("$dir/decode_$set"/lat.*.gz) tuning=()
        [[ $set == "$tuned" ]] || tuning=("--in=$dir/decode_$tuned/scoring_kaldi/best_wer")
        once --in="$dir/decode_$set/num_jobs" "${lattices[@]/#/--in=}" "${tuning[@]}" --in="data/$set/text" \
            --out="$dir/decode_$set/scoring_kaldi" -- \
            steps/score.sh --cmd "$decode_cmd" "$@" ${tuning:+--tuned-on "$dir/decode_$tuned"} \
            "data/$set" "$graph" "$dir/decode_$set"
    done
}
