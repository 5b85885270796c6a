# shellcheck shell=bash disable=SC2034
# The sizes of kubo2012 and lu2014.
pixels=784                    # the basis of a linear model
features=10000                # random Fourier features
bandwidths="0.1 0.2 0.4"      # multiples of the median distance
kernel_rates="16 32 64"
layers=4 width=1000
basis=1000                    # vectors of the log-linear models
basis_bandwidths="0.15 0.25 0.4 0.6 0.9"
penalties="0.001 0.01 0.03"
linear_penalties="0.002 0.02 0.2 1"
search=50000 epochs=20
