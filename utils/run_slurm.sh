#!/usr/bin/env bash
# Run a command, or an array of jobs, through Slurm; called as run_local.sh is.
# Usage: run_slurm.sh [--max-jobs-run n] [--num-threads n] [--mem 4G] [--gpu n] [options] [JOB=1:nj] dir/log/x.JOB.log command …
# e.g.: run_slurm.sh --mem 4G --partition fast JOB=1:40 exp/log/decode.JOB.log kernelam decode exp/graph exp/kernel data/JOB exp/lat.JOB.gz
#
# --partition, --account, --qos, --time, --constraint, --nodelist and --exclude are sbatch's. A job that fails, or is lost
# with its node, by scancel or at its time limit, is submitted again by itself, up to --retries times (1 by default); the
# log of each try before the last ends in .try1, …. Folders must be the same on all nodes.
set -euo pipefail

if [[ ${1:-} == --task ]]; then  # on a node: the job of that number of a folder that `submit` made
    folder=$2 number=$SLURM_ARRAY_TASK_ID
    set -- "$(< "$folder/$number.log")" "$(< "$folder/$number.line")"
    set -- --num-threads "$(< "$folder/threads")" "$@"
    . "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/jobs.sh"
    status=0
    run_job "$log" "$1" || status=$?
    echo "$status" > "$folder/$number.partial"
    mv "$folder/$number.partial" "$folder/$number.done"
    exit
fi

. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/jobs.sh"
for program in sbatch squeue scancel; do
    command -v $program > /dev/null || die "there is no $program here: Slurm is not installed, or not on the PATH; run_local.sh runs jobs on this machine"
done
retries=${options[--retries]:-1}
[[ $retries =~ ^[0-9]+$ ]] || die "--retries takes a number, not $retries"
resources=(--cpus-per-task="$threads")
((gpu == 0)) || resources+=(--gres="gpu:$gpu")
for option in --mem --partition --account --qos --time --constraint --nodelist --exclude; do
    [[ -z ${options[$option]:-} ]] || resources+=("$option=${options[$option]}")
done

open_log "$(log_of "$first")"
folder=$(mktemp -d "$(readlink -f "$(dirname "$(log_of "$first")")")/.slurm.XXXXXX")
echo "$threads" > "$folder/threads"
declare -A tried=() array=() missed=()  # of each job: how often, the array it is in, and whether the queue lacked it once

submit() {  # submit NUMBER…: as an array
    local list=$1 id number
    for number in "${@:2}"; do list+=,$number; done
    ((at_once == 0)) || list+=%$at_once
    id=$(sbatch --parsable --job-name="$(basename "$log")" --array="$list" --chdir="$PWD" --no-requeue \
        --output="$folder/%a.out" --open-mode=append "${resources[@]}" "$task" "$folder" 2> "$folder/refused") \
        || die "sbatch refuses: $(tail -n 1 "$folder/refused")"
    id=${id%%;*}
    ids+=("$id")
    tell_guard
    for number in "$@"; do array[$number]=$id tried[$number]=$((${tried[$number]:-0} + 1)) missed[$number]=''; done
}

# The guard cancels what is still in the queue, and removes the folder, when this script is gone, even by kill -9.
ids=()
guard() {
    local line every=''
    trap '' INT TERM HUP
    while read -r line; do every=$line; done
    # shellcheck disable=SC2086,SC2090  # several words
    [[ -z $every ]] || scancel $every 2> /dev/null || true
    rm -rf "$folder"
}
tell_guard() { echo "${ids[*]}" >&"$guard"; }
set -m
coproc GUARD { guard; }
set +m
guard=${GUARD[1]}

stop() {
    trap '' INT TERM HUP
    echo "$me: interrupted, cancelling ${#waiting[@]} jobs" >&2
    exec {guard}>&-
    wait
    exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM
trap 'stop 129' HUP

again() {  # again NUMBER WHAT: another try, or none is left
    local file
    file=$(log_of "$1")
    if ((tried[$1] > retries)); then
        failed+=("$1")
        unset "waiting[$1]"
        [[ -s $file ]] || cp "$folder/$1.out" "$file" 2> /dev/null || true
        [[ $2 == failed ]] || echo "# $me: the job $2" >> "$file"
        return
    fi
    echo "$me: job $1 $2, and is submitted again (log of this try: $file.try${tried[$1]})" >&2
    cp "$file" "$file.try${tried[$1]}"
    rm -f "$folder/$1.done"
    submit "$1"
}

look() {  # which jobs have ended, and which are gone
    local number queue=${1:-}
    for number in "${!waiting[@]}"; do
        if [[ -e $folder/$number.done ]]; then
            if [[ $(< "$folder/$number.done") == 0 ]]; then unset "waiting[$number]"; else again "$number" failed; fi
        elif [[ -n $queue ]]; then
            if [[ $queue == *" ${array[$number]}_$number "* ]]; then
                missed[$number]=''
            elif [[ -z ${missed[$number]} ]]; then
                missed[$number]=1  # what it wrote may still be under way
            else
                again "$number" "was lost, cancelled or killed"
            fi
        fi
    done
}

task=$folder/run.sh
# shellcheck disable=SC2016  # of the script
printf '#!/usr/bin/env bash\nexec %q --task "$1"\n' "$(readlink -f "${BASH_SOURCE[0]}")" > "$task"
declare -A waiting=()
for ((number = first; number <= last; number++)); do
    file=$(log_of "$number")
    open_log "$file"
    : > "$file"
    readlink -f "$file" > "$folder/$number.log"
    command_line "$number" "$@" > "$folder/$number.line"
    waiting[$number]=1
done
mapfile -t numbers < <(printf '%s\n' "${!waiting[@]}" | sort -n)
submit "${numbers[@]}"

pause=0.2 SECONDS=0 looked=0 reachable=true
while ((${#waiting[@]})); do
    sleep $pause
    queue=
    if ((SECONDS - looked >= ${KERNELAM_SLURM_INTERVAL:-10})); then
        looked=$SECONDS
        if queue=$(squeue -h -r -u "$(id -un)" -o '%F_%K' 2> "$folder/refused"); then
            queue=" $(tr '\n' ' ' <<< "$queue") "
            reachable=true
        else
            ! $reachable || echo "$me: squeue does not answer ($(tail -n 1 "$folder/refused")); waiting" >&2
            reachable=false queue=
        fi
    fi
    look "$queue"
    ((SECONDS < 10)) || pause=1
done
ids=()
tell_guard
exec {guard}>&-
wait
report
