# shellcheck shell=bash disable=SC2034
# 10,000 random features; lu2014 has 20 blocks of 200,000 (--blocks).
pixels=3073                   # the basis of a linear model
features=10000                # random Fourier features
bandwidths="0.1 0.2 0.4"      # multiples of the median distance
kernel_rates="16 32 64"
layers=4 width=1000
basis=1000                    # vectors of the log-linear models
penalties="0.01 0.1 1"
search=50000 epochs=20
