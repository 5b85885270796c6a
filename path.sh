# shellcheck shell=bash
# The toolkit's environment; to be sourced, from any folder:   . path.sh [tests/requirements.txt …]
#
# Uses the active environment (venv or conda) if it satisfies pyproject.toml and the requirement files named; otherwise
# .venv, which it makes on first use from requirements.txt and those files. PYTHON names the Python to make it with;
# pip obeys its own settings (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, pip.conf). A failure is one sentence and status 1.

[ -n "${BASH_VERSION:-}" ] || { echo "path.sh: needs bash" >&2; return 1; }

_kernelam_say() { echo "path.sh: $*" >&2; }

_kernelam_path() {
    local root file sums prefix files=()
    if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
        _kernelam_say "bash 4.4 or later is needed, this is $BASH_VERSION"
        return 1
    fi
    root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd -P) || return 1
    for file in "$@"; do  # without arguments of its own, a sourced file sees those of the script that sources it
        [[ $file == *requirements.txt ]] || continue
        if [[ ! -f $root/$file ]]; then
            _kernelam_say "there is no file $root/$file; requirement files are named from the toolkit's folder"
            return 1
        fi
        files+=("$file")
    done
    sums=$(cd "$root" && cksum requirements.txt "${files[@]}" pyproject.toml) || return 1

    # KERNELAM_ENV is the environment chosen, KERNELAM_READY under which conditions: nested scripts do not ask again.
    local conditions="$root|${VIRTUAL_ENV:-}|${CONDA_PREFIX:-}"
    if [[ ${KERNELAM_READY:-} == "$conditions"$'\n'* && -x ${KERNELAM_ENV:-}/bin/python ]] \
        && _kernelam_has "$KERNELAM_READY" "$sums"; then
        prefix=$KERNELAM_ENV
    else
        prefix=${VIRTUAL_ENV:-${CONDA_PREFIX:-}}
        if [[ -z $prefix || $prefix == "$root/.venv" ]] || ! _kernelam_active_serves "$prefix"; then
            prefix=$root/.venv
            _kernelam_venv "$prefix" || return 1
        fi
        export KERNELAM_ENV=$prefix KERNELAM_READY=$conditions$'\n'$sums
    fi

    case $PATH: in
        "$root/utils/bin:$prefix/bin:"*) ;;
        *) PATH=$root/utils/bin:$prefix/bin:$PATH ;;
    esac
    export PATH LC_ALL=C                                  # Kaldi's tables are sorted in the C locale
    export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-10000}        # threads that spin long at barriers starve the jobs beside them
}

_kernelam_has() {  # _kernelam_has TEXT LINES: does TEXT have every one of the lines?
    local line
    while IFS= read -r line; do
        [[ $'\n'$1$'\n' == *$'\n'"$line"$'\n'* ]] || return 1
    done <<< "$2"
}

_kernelam_serves() {  # _kernelam_serves ENVIRONMENT: has it what is required? `lacking` is what it has not
    lacking=$(cd "$root" && "$1/bin/python" -P kernelam/requirements.py pyproject.toml "${files[@]}" 2>&1) && return
    _kernelam_new_enough "$1/bin/python" || lacking="Python 3.11 or later"
    lacking=${lacking##*$'\n'}
    return 1
}

_kernelam_active_serves() {
    local lacking
    _kernelam_serves "$1" && return
    _kernelam_say "the active environment $1 lacks $lacking; using $root/.venv"
    return 1
}

_kernelam_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1; }

_kernelam_venv() {  # .venv/ready lists the sums of the files that were installed whole
    local lacking wanted=$1$'\n'${sums%$'\n'*}  # all but pyproject.toml
    if [[ -L $1 ]]; then  # an environment that is not ours to change
        _kernelam_serves "$1" && return
        _kernelam_say "$1 is a link to $(readlink -f "$1"), which lacks $lacking; install it there, or remove the link"
        return 1
    fi
    _kernelam_is_ready "$1" && return
    if [[ ! -w $root ]]; then
        _kernelam_say "cannot write to $root, where .venv would be made; activate an environment that has the requirements"
        return 1
    fi
    (
        if command -v flock > /dev/null && ! flock -n 9; then
            _kernelam_say "waiting for another process that sets up $1"
            flock 9
        fi
        _kernelam_is_ready "$1" || _kernelam_install "$1"
    ) 9> "$root/.venv.lock"
}

_kernelam_is_ready() { [[ -x $1/bin/python && -r $1/ready ]] && _kernelam_has "$(< "$1/ready")" "$wanted"; }

_kernelam_is_whole() {  # not half of one, not moved here, not to be made with another Python
    [[ -x $1/bin/python && (-z ${PYTHON:-} || -e $1/ready) ]] \
        && grep -qsF " $1" "$1/pyvenv.cfg" && "$1/bin/python" -c "import pip" 2> /dev/null
}

_kernelam_install() {
    local log=$root/.venv-install.log python ready options=()
    : > "$log" || return 1
    if ! _kernelam_is_whole "$1"; then
        python=$(_kernelam_python) && _kernelam_room || return 1
        _kernelam_say "making $1 with $("$python" --version 2>&1) ($python)"
        if ! "$python" -m venv --clear "$1" >> "$log" 2>&1; then
            _kernelam_failure "$log" "cannot make $1"
            return 1
        fi
    fi
    if [[ $(uname) == Linux && ! -e $(echo "$1"/lib/python3*/site-packages/torch/version.py) ]]; then
        _kernelam_say "PyTorch for Linux may bring several GB of CUDA packages. To avoid them, name an index of CPU builds in pip's" \
            "settings (PIP_INDEX_URL or PIP_EXTRA_INDEX_URL), or activate an environment that has torch 2.13.0."
    fi
    _kernelam_say "installing requirements.txt${files[*]/#/ } (once; if interrupted, run again; log: $log)"
    for file in requirements.txt "${files[@]}"; do
        options+=(-r "$root/$file")
    done
    ready=$(cat "$1/ready" 2> /dev/null)
    rm -f "$1/ready"
    if [[ -t 2 ]]; then exec 3>&2; else exec 3> /dev/null; fi
    if ! PIP_USER=0 "$1/bin/python" -m pip install --disable-pip-version-check --log "$log" "${options[@]}" >&3 2>&3; then
        _kernelam_failure "$log" "the requirements cannot be installed"
        return 1
    fi
    awk 'NF { last[$NF] = $0 } END { for (file in last) print last[file] }' <<< "$ready"$'\n'"$wanted" \
        > "$1/ready.partial" && mv "$1/ready.partial" "$1/ready" && _kernelam_say "ready"
}

_kernelam_python() {
    local candidate old='' candidates=(python3 python3.13 python3.12 python3.11)
    [[ -n ${PYTHON:-} ]] && candidates=("$PYTHON")
    for candidate in "${candidates[@]}"; do
        if _kernelam_new_enough "$candidate"; then
            if ! "$candidate" -c 'import venv, ensurepip' 2> /dev/null; then
                _kernelam_say "$candidate lacks the modules venv and ensurepip; install them (Debian, Ubuntu: python3-venv)"
                return 1
            fi
            echo "$candidate"
            return
        fi
        old=${old:-$("$candidate" --version 2> /dev/null)}
    done
    _kernelam_say "Python 3.11 or later is needed, but ${PYTHON:-${candidates[*]}} gives ${old:-none}; install it or set PYTHON to its path"
    return 1
}

_kernelam_room() {
    local free
    free=$(df -Pm "$root" | awk 'NR == 2 { print $4 }')
    ((${free:-2000} >= 2000)) && return
    _kernelam_say "the disk is full: $root has $free MB free, the requirements take 1 to 2 GB (with CUDA, 8)"
    return 1
}

_kernelam_failure() {  # _kernelam_failure LOG WHAT: one sentence on the cause
    local cause
    if grep -qE 'No space left|quota exceeded|File too large' "$1"; then
        cause="the disk is full"
    elif grep -E 'Could not fetch URL|ConnectionPool|onnection broken|Read timed out|IncompleteRead' "$1" \
        | grep -qv '404 Client Error'; then
        cause="the package index cannot be reached (check the network, or name another in PIP_INDEX_URL)"
    elif grep -q 'not a trusted or secure host' "$1"; then
        cause="pip ignores a package index without HTTPS unless PIP_TRUSTED_HOST names its host"
    elif grep -q 'No matching distribution found' "$1"; then
        cause=$(grep -oE 'No matching distribution found for [^ ]+' "$1" | tail -n 1)
        cause="the package index has no ${cause##* } for $(uname -sm) and this Python (PYTHON names another)"
    else
        cause=$(sed -n 's/.*E[Rr][Rr][Oo][Rr]: //p' "$1" | tail -n 1)
    fi
    _kernelam_say "$2: ${cause:-unknown cause}; see $1"
}

_kernelam_status=0
_kernelam_path "$@" || _kernelam_status=1
# shellcheck disable=SC2046  # names of functions
unset -f $(compgen -A function _kernelam_)
# shellcheck disable=SC2317  # `return` fails when the file is run, not sourced
((_kernelam_status == 0)) || return 1 2> /dev/null || exit 1
