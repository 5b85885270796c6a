# shellcheck shell=bash
# What every script of steps/ and utils/ sources first:
#
#   set -euo pipefail
#   . "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"
#   nj=4                   # defaults, which are the options
#   parse_options "$@"
#   usage 2                # how many arguments must be left; then the environment is set up
#   set -- "${args[@]}"    # $1, $2, … are now the arguments
#
# It gives `root` (the toolkit's folder, wherever the script is called from), alone_in, jobs_of, need_units, speaker_jobs,
# publish, publish_lattices, no_data_in, no_model_in, keep_feature_opts, keep_logs and warnings, and parse_options, die, need and cores of options.sh. The
# environment of path.sh comes last: --help and mistakes are answered before anything is installed.
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd -P)
case " $* " in *" --help "* | *" -h "*) ;; *) echo "$0$(printf ' %q' "$@")" >&2 ;; esac
. "$root/utils/options.sh"

usage() {  # usage N [M]: as in options.sh
    count_arguments "$@"
    . "$root/path.sh" || exit 1
    local program=${cmd:-bash}
    command -v "${program%% *}" > /dev/null || die "--cmd: there is no program ${program%% *}"
}

warnings() {  # warnings LOG…: what jobs that ended well warned of
    cat "$@" | awk '/^warning: /' >&2  # which takes a name with = in it for an assignment
}

no_data_in() {  # no_data_in DIR: it is no data directory
    [[ ! -e $1/utt2spk ]] || die "$1 is a data directory; name another one"
}

no_model_in() {  # no_model_in DIR FILE: nor has it FILE, of a model, which would be lost
    no_data_in "$1"
    [[ ! -e $1/$2 ]] || die "$1 has a model, which would be lost; name another directory"
}

keep_logs() {  # keep_logs LOG…: what an earlier run told, which may go on now, stays in LOG.bak; $cmd begins logs anew
    local log
    for log in "$@"; do [[ ! -s $log ]] || { cat "$log" >> "$log.bak"; } 2> /dev/null || die "cannot write $log.bak"; done
}

alone_in() {  # alone_in DIR: wait until no other script works in DIR; this one does until it ends, however it ends
    local handle
    [[ ! ${KERNELAM_ALONE_IN:-} -ef $1 ]] || return 0  # the script that called this one holds it
    exec {handle}< "$1"
    if command -v flock > /dev/null && ! flock -n "$handle"; then
        echo "$0: another process is at work in $1: waiting for it to end" >&2
        flock "$handle"
    fi
    export KERNELAM_ALONE_IN=$1
}

keep_feature_opts() {  # keep_feature_opts DATA DIR: how the features of DATA were made, if it is known, beside the model in DIR
    rm -f "$2/feature_opts"
    [[ ! -e $1/feature_opts ]] || cp "$1/feature_opts" "$2"
}

publish() {  # publish NEW DIR: what is in NEW moves to DIR
    local file
    for file in "$1"/*; do [[ ! -e $file ]] || mv "$file" "$2"; done
    rmdir "$1"
}

publish_lattices() {  # publish_lattices NEW DIR NJ: the lattices of NJ jobs in NEW take the place of those in DIR
    rm -rf "$2"/num_jobs "$2"/model.json "$2"/lat.*.gz "$2"/wer_* "$2"/scoring_kaldi
    publish "$1" "$2"
    echo "$3" > "$2/num_jobs"
}

need_units() {  # need_units UNITS: names of units that are scored, with commas between them, or a file that is there
    [[ $1, =~ ^((words|characters|noascii|unmarked|joined),)+$ ]] || need "$1"
}

jobs_of() {  # jobs_of DIR: the number in DIR/num_jobs
    local count
    need "$1/num_jobs"
    count=$(< "$1/num_jobs")
    [[ $count =~ ^[1-9][0-9]*$ ]] || die "$1/num_jobs does not hold a number of jobs"
    echo "$count"
}

speaker_jobs() {  # speaker_jobs DATA NJ: as many jobs as there are speakers, but not more than NJ
    local speakers
    speakers=$(wc -l < "$1/spk2utt")
    echo $((speakers < $2 ? speakers : $2))
}

pass_on() {  # pass_on N "$@": instead of parse_options and usage where kernelam parses the options that the header names
    local least=$1 argument
    shift
    for argument in "$@"; do
        case $argument in
            --help | -h) parse_options --help ;;
            --*) grep -qE "^#.*${argument%%=*}([^a-z-]|$)" "$0" || die "unknown option $argument (--help lists them)" ;;
        esac
    done
    args=("${@:1:least}")  # kernelam knows how many more there may be
    usage "$least"
}

become() {  # become SCRIPT ARGUMENTS…: go on as a Python script of local/, which finds kernelam and the modules of local/mini
    export PYTHONPATH=$root:$root/local/mini${PYTHONPATH:+:$PYTHONPATH}
    exec python "$root/local/$1" "${@:2}"
}
