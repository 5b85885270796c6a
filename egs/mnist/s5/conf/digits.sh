# shellcheck shell=bash disable=SC2034
# 1797 digits of 8 × 8 pixels: sizes for a minute.
pixels=64                     # the basis of a linear model
features=2000                 # random Fourier features
bandwidths="0.1 0.3 1"        # multiples of the median distance
kernel_rates="2 4 8 16 32"   # the lower ones for two classes
layers=2 width=256
basis=100                     # vectors of the log-linear models
basis_bandwidths="0.1 0.3 1"
penalties="0.01 0.1 1"
linear_penalties="0.01 0.1 1"
search=1100 epochs=30
machines=true                 # a support vector machine and a multilayer kernel machine too
