#!/usr/bin/env bash
# Data directories and dictionary of Broadcast News: shows with SGML or STM transcripts to train on, STM to test on.
# Usage: local/bn50/prepare.sh [options] <corpus> <data>
# <corpus> is the folder of the sound, or several between quotes. What the options do not name is looked for in it:
#   --transcripts <dirs>   of the training shows, .txt, .sgml or .stm
#   --shows <file>         the shows to train on, one a line; otherwise every show that has sound and transcript
#   --dev <dirs>           sound and STM files; otherwise a folder dev04…
#   --test <dirs>          the same; otherwise a folder rt03…
#   --lexicon <file>       in CMUdict's layout; otherwise lexicon… or cmudict…
#   --glm <file>           mapping rules; otherwise a file of that ending
#   --text <files>         more text for the language model; otherwise text.txt
# e.g.: local/bn50/prepare.sh --transcripts "/ldc/LDC97T22 /ldc/LDC98T28" --shows conf/bn50.list --dev /ldc/dev04f \
#           --test /ldc/rt03 --lexicon cmudict-0.7b "/ldc/LDC97S44 /ldc/LDC98S71" data
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../utils/script.sh"

pass_on 2 "$@"
become bn50/bn_corpus.py "$@"
