# shellcheck shell=bash
# Options and errors of scripts, by Kaldi's rules. Sourced by script.sh, parse_options.sh and run_local.sh.
#
#   --name value       sets a variable that the script has defined already; --foo-bar sets foo_bar
#   --flag true|false  checked when the default is true or false
#   --config file      is sourced first; the command line wins
#   --help             prints the script's header comment and its defaults

die() {
    echo "$0: $*" >&2
    exit 1
}

need() {  # need FILE…: stop at the first that is not there
    local _file
    for _file in "$@"; do
        [[ -e $_file ]] || die "no such file $_file"
    done
}

place_of() {  # place_of FOLDER: its path from the root
    [[ -d $1 ]] || die "no such file or directory $1"
    readlink -f "$1"
}

cores() {  # those this process may use: affinity, and a container's share
    local count quota period
    count=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2> /dev/null || getconf _NPROCESSORS_ONLN)
    if read -r quota period 2> /dev/null < /sys/fs/cgroup/cpu.max && [[ $quota != max ]]; then
        quota=$(((quota + period - 1) / period))
        count=$((quota < count ? quota : count))
    fi
    echo "$count"
}

# The header comment, then one line an option: each `name=default  # meaning` above the call of parse_options, and in
# the files of the toolkit that are sourced there.
_help() {
    awk -v root="${root:-}" '
         function option(line,    name, value, meaning) {
             if (!match(line, /^[a-zA-Z_][a-zA-Z0-9_]*=/)) return
             name = substr(line, 1, RLENGTH - 1); gsub(/_/, "-", name)
             value = substr(line, RLENGTH + 1)
             if (match(value, /[ \t]+# ?/)) {
                 meaning = substr(value, RSTART + RLENGTH); value = substr(value, 1, RSTART - 1)
             }
             if (!options++) print "Options and their defaults:"
             printf "  %-32s %s\n", "--" name " " value, meaning
         }
         NR == 1 && /^#!/ { next }
         !body && /^#/ { sub(/^# ?/, ""); print; next }
         { body = 1 }
         /parse_options/ { exit }
         /^\. "\$root\// {
             split($0, parts, "\"")
             file = root substr(parts[2], length("$root") + 1)
             while ((getline line < file) > 0) option(line)
         }
         { option($0) }' "$0"
}

count_arguments() {  # count_arguments N [M]: unless N (to M) are left in `args`, print the header comment, exit 1
    if ((${#args[@]} < $1 || ${#args[@]} > ${2:-$1})); then
        echo "$0: takes $1${2:+ to $2} arguments, got ${#args[@]}" >&2
        _help >&2
        exit 1
    fi
}

usage() { count_arguments "$@"; }

# parse_options "$@": set variables from the options, leave the arguments behind them in the array `args`.
# A function cannot set its caller's $1, $2, …: a script goes on with   set -- "${args[@]}"
parse_options() {
    local _name _i
    for ((_i = 1; _i < $#; _i += 2)); do
        [[ ${!_i} == --* ]] || break
        [[ ${!_i} == --config ]] && _read_config "${@:_i+1:1}"
    done
    while (($#)); do
        case $1 in
            --help | -h)
                if [[ -n ${help_message:-} ]]; then echo "$help_message"; else _help; fi
                exit 0 ;;
            --*=*) die "options are of the form --name value, got $1" ;;
            --config)
                (($# > 1)) || die "option --config needs a value"
                shift 2 ;;
            --*)
                _name=${1#--} _name=${_name//-/_}
                _is_option "$_name" || die "unknown option $1 (--help lists them)"
                (($# > 1)) || die "option $1 needs a value"
                _check_value "$_name" "$2"
                printf -v "$_name" %s "$2"
                shift 2 ;;
            *) break ;;
        esac
    done
    # shellcheck disable=SC2034  # for the caller
    args=("$@")
}

_read_config() {
    need "$1"
    # shellcheck disable=SC1090
    . "$1" || die "cannot use the configuration file $1"
}

_is_option() {  # the script has defined the variable
    [[ $1 =~ ^[a-z][a-z0-9_]*$ && $1 != root && $1 != args && -n ${!1+x} ]]
}

_check_value() {
    local _given=${2#--}
    if [[ $2 == --* ]] && _is_option "${_given//-/_}"; then
        die "option --${1//_/-} needs a value, got $2"
    fi
    case $1=${!1} in
        *=true | *=false) [[ $2 == true || $2 == false ]] || die "option --${1//_/-} takes true or false, not '$2'" ;;
        stage=* | stop_stage=*) [[ $2 =~ ^-?[0-9]+$ ]] || die "option --${1//_/-} takes a whole number, not '$2'" ;;
        seed=* | num_*=* | totgauss=* | max_iter_inc=*)
            [[ $2 =~ ^[0-9]+$ ]] || die "option --${1//_/-} takes a whole number, not '$2'" ;;
        min_lmwt=* | max_lmwt=* | blocks=*)
            [[ $2 =~ ^[1-9][0-9]*$ ]] || die "option --${1//_/-} takes a whole number of at least 1, not '$2'" ;;
        device=*) [[ $2 =~ ^(cpu|cuda(:[0-9]+)?)$ ]] || die "option --device takes cpu or cuda, not '$2'" ;;
        nj=*) [[ $2 =~ ^[1-9][0-9]*$ ]] || die "option --nj takes a number of jobs, not '$2'" ;;
    esac
}
