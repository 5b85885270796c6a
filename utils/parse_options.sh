# shellcheck shell=bash
# Kaldi's convention, for scripts that define their defaults and then say  . utils/parse_options.sh
# Sets the variables that the options name, and shifts them off the positional parameters.
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/options.sh"
parse_options "$@"
set -- "${args[@]}"
