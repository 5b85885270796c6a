# shellcheck shell=bash
# The toolkit's environment.
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../../path.sh"
