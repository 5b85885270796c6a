#!/usr/bin/env bash
# Fetch the Iban radio news corpus (CC BY-SA 2.0 FR) and unpack it; what is there already is not fetched again.
# Usage: local/iban/download.sh [options] <corpus>
# e.g.: local/iban/download.sh corpus
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

url=https://www.openslr.org/resources/24/iban.tar.gz  # the archive

parse_options "$@"
usage 1
set -- "${args[@]}"
corpus=$1

if [[ -e $corpus/data/train/text ]]; then
    echo "$0: $corpus is there" >&2
    exit
fi
command -v curl > /dev/null || die "fetching the corpus needs the program curl"
mkdir -p "$corpus"
alone_in "$corpus"
archive=$corpus/iban.tar.gz
[[ -e $archive ]] || { curl -fL --retry 3 -C - -o "$archive.part" "$url" && mv "$archive.part" "$archive"; } ||
    die "cannot fetch $url; run this again to continue from what is there"
unpacked=$corpus/.unpacked
rm -rf "$unpacked"
mkdir "$unpacked"
tar -xzf "$archive" -C "$unpacked" || die "$archive is damaged: remove it and run this again"
inside=$unpacked
[[ -e $inside/data/train/text ]] || inside=$(dirname "$(dirname "$(dirname "$(find "$unpacked" -path '*/data/train/text' | head -1)")")")
[[ -e $inside/data/train/text ]] || die "$archive has no data/train/text: it is not the Iban corpus"
for part in "$inside"/*; do
    rm -rf "${corpus:?}/$(basename "$part")"
    mv "$part" "$corpus"
done
rm -rf "$unpacked" "$archive"
