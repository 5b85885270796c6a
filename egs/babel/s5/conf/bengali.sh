# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# Bengali, IARPA-babel103b-v0.4b
code=103
has_tones=none              # keep: they are of the phones
order=2                     # of the LM, as in may2017
scored=unmarked             # WER
