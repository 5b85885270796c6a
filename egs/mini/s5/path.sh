# shellcheck shell=bash
# The toolkit's environment, and the synthesiser of this recipe's corpus.
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../../path.sh" local/mini/requirements.txt
