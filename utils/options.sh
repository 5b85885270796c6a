# shellcheck shell=bash
# Options and errors of scripts, by Kaldi's rules. Sourced by script.sh and by parse_options.sh.
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

# The header comment, then one line an option: each `name=default  # meaning` above the call of parse_options.
_help() {
    awk 'NR == 1 && /^#!/ { next }
         !body && /^#/ { sub(/^# ?/, ""); print; next }
         { body = 1 }
         /parse_options/ { exit }
         match($0, /^[a-zA-Z_][a-zA-Z0-9_]*=/) {
             name = substr($0, 1, RLENGTH - 1); gsub(/_/, "-", name)
             value = substr($0, RLENGTH + 1); meaning = ""
             if (match(value, /[ \t]+# ?/)) {
                 meaning = substr(value, RSTART + RLENGTH); value = substr(value, 1, RSTART - 1)
             }
             if (!options++) print "Options and their defaults:"
             printf "  %-32s %s\n", "--" name " " value, meaning
         }' "$0"
}

usage() {  # usage N [M]: unless N (to M) arguments are left in `args`, print the header comment, exit 1
    if ((${#args[@]} < $1 || ${#args[@]} > ${2:-$1})); then
        echo "$0: takes $1${2:+ to $2} arguments, got ${#args[@]}" >&2
        _help >&2
        exit 1
    fi
}

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
    [[ $1 =~ ^[a-zA-Z][a-zA-Z0-9_]*$ && $1 != root && $1 != args && -n ${!1+x} ]]
}

_check_value() {
    local _given=${2#--}
    if [[ $2 == --* ]] && _is_option "${_given//-/_}"; then
        die "option --${1//_/-} needs a value, got $2"
    fi
    case $1=${!1} in
        *=true | *=false) [[ $2 == true || $2 == false ]] || die "option --${1//_/-} takes true or false, not '$2'" ;;
        stage=* | stop_stage=*) [[ $2 =~ ^-?[0-9]+$ ]] || die "option --${1//_/-} takes a whole number, not '$2'" ;;
        nj=*) [[ $2 =~ ^[1-9][0-9]*$ ]] || die "option --nj takes a number of jobs, not '$2'" ;;
    esac
}
