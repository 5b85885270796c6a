# shellcheck shell=bash disable=SC2034
# The sizes of kubo2012 and lu2014.
pixels=784                    # the basis of a linear model
features=10000                # random Fourier features
kernel_options=(--kernel "gaussian o pca:40" --sampling orthogonal --precondition 300)
bandwidths="0.5 1 2"          # multiples of the median distance
kernel_rates="4096 8192 16384"
layers=4 width=1000
basis=1000                    # vectors of the log-linear models
basis_bandwidths="0.15 0.25 0.4 0.6 0.9"
penalties="0.001 0.01 0.03"
linear_penalties="0.002 0.02 0.2 1"
search=50000 epochs=20
deformed=true                 # train the first two kinds of model on deformed images too, for twice the epochs
