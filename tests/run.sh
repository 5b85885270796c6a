#!/usr/bin/env bash
# Set up, then run the linters, the type checker and the tests. Arguments go to pytest.
# e.g.: tests/run.sh tests/kaldi -k tables
set -euo pipefail
[[ ${1:-} != --help ]] || { sed -n '2,3s/^# //p' "$0"; exit; }
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
. ./path.sh tests/requirements.txt local/{mini,babel}/requirements.txt

failed=()
check() {  # run all of them, name those that failed at the end
    echo "== $*"
    "$@" || failed+=("$*")
}

check ruff check .
check ruff format --check .
check mypy kernelam local
mapfile -t scripts < <(grep -rlIE --exclude='*.py' '^(#!.*[/ ]bash|# shellcheck shell=bash)$' \
    path.sh .ci egs/*/s5/*.sh local steps tests utils | sort)
if command -v shellcheck > /dev/null; then
    echo "== shellcheck: ${#scripts[@]} scripts"
    shellcheck "${scripts[@]}" || failed+=(shellcheck)
elif [[ -n ${KERNELAM_CI:-} ]]; then
    failed+=("shellcheck (needs the program shellcheck)")
else
    echo "== shellcheck: SKIPPED, needs the program shellcheck"
fi
check python -m pytest -n 2 --dist loadfile "$@"

if ((${#failed[@]})); then
    printf 'tests/run.sh: failed: %s\n' "${failed[@]}" >&2
    exit 1
fi
echo "tests/run.sh: all passed"
