# shellcheck shell=bash
# What every script of steps/ and utils/ sources first:
#
#   set -euo pipefail
#   . "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../utils/script.sh"
#   nj=4                   # defaults, which are the options
#   parse_options "$@"
#   usage 2                # how many arguments must be left
#   set -- "${args[@]}"    # $1, $2, … are now the arguments
#
# It gives `root` (the toolkit's folder, wherever the script is called from), the environment of path.sh, and
# parse_options, usage, die and need of options.sh.
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd -P)
case " $* " in *" --help "* | *" -h "*) ;; *) echo "$0 $*" >&2 ;; esac
. "$root/utils/options.sh"
. "$root/path.sh" || exit 1
