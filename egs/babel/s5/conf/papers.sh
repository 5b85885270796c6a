# shellcheck shell=bash
# shellcheck disable=SC2034  # read by run.sh
# The sizes of the papers. The graph of quinphones needs many GB; without --context-opts they are triphones.
gmms=(1000 1000 16000 --context-opts "--context-width=5 --central-position=2")
combined=(exp/gaussian_br exp/dnn_tanh1000_br)
. utils/papers.sh

may2017() { kernels_of_may2017 250 100000; }

networks() { networks_of_papers 250; }
