# shellcheck shell=bash
# shellcheck disable=SC2034  # read by those who source this
# What run_local.sh and run_slurm.sh share: their arguments, the command line and the log of a job, and what is said of those
# that failed. Sourced with the arguments of the script.

me=${0##*/}
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/options.sh"

[[ ${1:-} != --help ]] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit; }

name='' first=1 last=1 threads=1 at_once=0 gpu=0
declare -A options=()  # others that have a value
while (($# > 1)); do
    case $1 in
        -V) shift ;;
        -pe) shift 3 ;;
        --max-jobs-run | -tc) at_once=$2; shift 2 ;;
        --num-threads) threads=$2; shift 2 ;;
        --gpu) gpu=$2; shift 2 ;;
        -*) options[$1]=$2; shift 2 ;;
        *)
            [[ $1 =~ ^([A-Za-z_][A-Za-z0-9_]*)=([0-9]+)(:([0-9]+))?$ ]] || break
            name=${BASH_REMATCH[1]} first=${BASH_REMATCH[2]} last=${BASH_REMATCH[4]:-$first}
            ((first >= 1 && first <= last)) || die "bad range of jobs $1: it goes from 1 or more up, as in JOB=1:4"
            shift ;;
    esac
done
(($# > 1)) || die "takes a log file and a command (--help says more)"
[[ $threads =~ ^[1-9][0-9]*$ && $at_once =~ ^[0-9]+$ && $gpu =~ ^[0-9]+$ ]] \
    || die "--num-threads, --max-jobs-run and --gpu take numbers"
log=$1
shift
((first == last)) || [[ $log == *"$name"* ]] || die "$((last - first + 1)) jobs cannot share the log $log; put $name in its name"
export OMP_NUM_THREADS=$threads MKL_NUM_THREADS=$threads OPENBLAS_NUM_THREADS=$threads
failed=()

log_of() { if [[ -n $name ]]; then echo "${log//"$name"/$1}"; else echo "$log"; fi; }

command_line() {  # of job $1: the arguments behind, quoted for bash
    local number=$1 argument line=
    shift
    for argument in "$@"; do
        case $argument in
            '|' | '|&' | '||' | '&&' | ';' | '&' | '(' | ')' | '>' | '>>' | '<' | '2>' | '2>>' | '&>' | '2>&1' | '>&2' | '2>/dev/null') ;;
            *)
                [[ -z $name ]] || argument=${argument//"$name"/$number}
                [[ $argument =~ ^[A-Za-z0-9_./:=,+@%^-]+$ ]] || argument="'${argument//\'/\'\\\'\'}'" ;;
        esac
        line+="$argument "
    done
    echo "${line% }"
}

run_job() {  # run_job LOG LINE: the log's frame is Kaldi's
    local status=0
    SECONDS=0
    {
        printf '# %s\n# Started at %(%a %b %e %H:%M:%S %Z %Y)T\n#\n' "${2//$'\n'/$'\n'# }" -1
        bash -o pipefail -c "$2" < /dev/null || status=$?
        printf '# Accounting: time=%d threads=%d\n' "$SECONDS" "$threads"
        printf '# Ended (code %d) at %(%a %b %e %H:%M:%S %Z %Y)T, elapsed time %d seconds\n' "$status" -1 "$SECONDS"
    } > "$1" 2>&1
    return "$status"
}

open_log() {  # open_log FILE: it can be written
    { mkdir -p "$(dirname "$1")" && : >> "$1"; } 2> /dev/null || die "cannot write the log $1"
}

report() {
    local numbers file
    ((${#failed[@]})) || return 0
    mapfile -t numbers < <(printf '%s\n' "${failed[@]}" | sort -n)
    file=$(log_of "${numbers[0]}")
    if ((first == last)); then
        echo "$me: job failed, log is in $file" >&2
    else
        echo "$me: ${#failed[@]} of $((last - first + 1)) jobs failed, logs are in ${log//"$name"/*}" >&2
    fi
    echo "$me: last lines of $file:" >&2
    tail -n 12 "$file" | sed 's/^/    /' >&2
    [[ -s $file ]] || echo "$me: it is empty: perhaps the disk is full" >&2
    if grep -q '^# Ended (code 137)' "$file"; then
        echo "$me: it was killed, perhaps for want of memory" >&2
    else  # the sentence of its error, if it has one
        grep -v '^#' "$file" | tail -n 1 | grep -E '^(kernelam[a-z -]*|[^ ]+\.sh): ' >&2 || true
    fi
    exit 1
}
