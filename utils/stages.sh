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
