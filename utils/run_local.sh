#!/usr/bin/env bash
# Run a command, or an array of jobs, on this machine; called as Kaldi's run.pl is.
# Usage: run_local.sh [--max-jobs-run n] [--num-threads n] [--mem 4G] [--gpu n] [JOB=1:nj] dir/log/x.JOB.log command …
# e.g.: run_local.sh JOB=1:4 exp/log/show.JOB.log gunzip -c data/JOB.gz \| sort \> exp/sorted.JOB
#
# JOB (any name) is replaced by the job's number in the log's name and in every argument. Arguments reach the command
# unharmed, except that one which is a shell operator by itself, such as | or >, acts as the operator.
# As many jobs run at once as there are cores. Other options of run.pl and queue.pl are accepted and ignored.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/jobs.sh"

if ((at_once == 0)); then
    at_once=$(($(cores) / threads))
    ((gpu == 0)) || at_once=1
    ((at_once > 0)) || at_once=1
fi

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

tell_guard() { echo "${!running[@]}" >&"$guard"; }

start() {
    local number=$1 file line
    shift
    file=$(log_of "$number") line=$(command_line "$number" "$@")
    open_log "$file"
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
