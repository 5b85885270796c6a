#!/usr/bin/env bash
# Run a command, or an array of jobs, on this machine; called as Kaldi's run.pl is.
# Usage: run_local.sh [--max-jobs-run n] [--num-threads n] [--mem 4G] [--gpu n] [JOB=1:nj] dir/log/x.JOB.log command …
# e.g.: run_local.sh JOB=1:4 exp/log/show.JOB.log gunzip -c data/JOB.gz \| sort \> exp/sorted.JOB
#
# JOB (any name) is replaced by the job's number in the log's name and in every argument. Arguments reach the command
# unharmed, except that one which is a shell operator by itself, such as | or >, acts as the operator.
# As many jobs run at once as there are cores. Other options of run.pl and queue.pl are accepted and ignored.
set -euo pipefail
me=${0##*/}
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/options.sh"

[[ ${1:-} != --help ]] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit; }

name='' first=1 last=1 threads=1 at_once=0 gpu=0
while (($# > 1)); do
    case $1 in
        -V) shift ;;
        -pe) shift 3 ;;
        --max-jobs-run | -tc) at_once=$2; shift 2 ;;
        --num-threads) threads=$2; shift 2 ;;
        --gpu) gpu=$2; shift 2 ;;
        -*) shift 2 ;;
        *)
            [[ $1 =~ ^([A-Za-z_][A-Za-z0-9_]*)=([0-9]+)(:([0-9]+))?$ ]] || break
            name=${BASH_REMATCH[1]} first=${BASH_REMATCH[2]} last=${BASH_REMATCH[4]:-$first}
            ((first >= 1 && first <= last)) || die "bad range of jobs $1"
            shift ;;
    esac
done
(($# > 1)) || die "takes a log file and a command, see $0"
[[ $threads =~ ^[1-9][0-9]*$ && $at_once =~ ^[0-9]+$ && $gpu =~ ^[0-9]+$ ]] \
    || die "--num-threads, --max-jobs-run and --gpu take numbers"
log=$1
shift
((first == last)) || [[ $log == *"$name"* ]] || die "$((last - first + 1)) jobs cannot share the log $log; put $name in its name"
if ((at_once == 0)); then
    at_once=$(($(cores) / threads))
    ((gpu == 0)) || at_once=1
    ((at_once > 0)) || at_once=1
fi
export OMP_NUM_THREADS=$threads MKL_NUM_THREADS=$threads OPENBLAS_NUM_THREADS=$threads

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
    exit "$status"
}

# Every job is a process group, so that a pipeline dies whole. The guard ends the groups that still run when this
# script is gone, even by kill -9: it then reads the end of a pipe whose only writer is this script.
guard() {
    local line groups='' group
    trap '' INT TERM HUP
    while read -r line; do groups=$line; done
    for group in $groups; do kill -TERM -- "-$group" 2> /dev/null || true; done
    for _ in {1..50}; do
        for group in $groups; do kill -0 -- "-$group" 2> /dev/null && { sleep 0.1; continue 2; }; done
        return
    done
    for group in $groups; do kill -KILL -- "-$group" 2> /dev/null || true; done
}

declare -A running=()    # process group: job
failed=()

tell_guard() { echo "${!running[@]}" >&"$guard"; }

start() {
    local number=$1 file line
    shift
    file=$(log_of "$number") line=$(command_line "$number" "$@")
    { mkdir -p "$(dirname "$file")" && : >> "$file"; } 2> /dev/null || die "cannot write the log $file"
    set -m
    if ((number == first)) && [[ -t 2 ]]; then  # its progress bar is shown
        KERNELAM_PROGRESS_FD=3 run_job "$file" "$line" 3>&2 {guard}>&- &
    else
        KERNELAM_PROGRESS_FD='' run_job "$file" "$line" {guard}>&- &
    fi
    set +m
    running[$!]=$number
    tell_guard
}

collect() {  # the jobs that have ended; fails if there are none
    local pid still before=${#running[@]}
    still=" $(jobs -rp | tr '\n' ' ')"
    for pid in "${!running[@]}"; do
        [[ $still == *" $pid "* ]] && continue
        wait "$pid" || failed+=("${running[$pid]}")
        unset "running[$pid]"
    done
    tell_guard
    ((${#running[@]} < before))
}

reap() { collect || wait -n || true; }  # `wait -n` does not see a job that ended before it was called

stop() {
    trap '' INT TERM HUP
    echo "$me: interrupted, ending ${#running[@]} jobs" >&2
    exec {guard}>&-
    wait
    exit "$1"
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
    if grep -q '^# Ended (code 137)' "$file"; then echo "$me: it was killed, perhaps for want of memory" >&2; fi
    exit 1
}

set -m
coproc GUARD { guard; }
set +m
guard=${GUARD[1]}
trap 'stop 130' INT
trap 'stop 143' TERM
trap 'stop 129' HUP
for ((number = first; number <= last; number++)); do
    while ((${#running[@]} >= at_once)); do reap; done
    start "$number" "$@"
done
while ((${#running[@]})); do reap; done
report
