# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# Cantonese, IARPA-babel101b-v0.4c
code=101
has_tones=keep
order=3                     # of the LM, as in may2017
scored=unmarked,noascii     # CER, words in Latin letters whole
