# shellcheck shell=bash disable=SC2034
# The sizes of MNIST; lu2014 has 20 blocks of 200,000 random features.
# shellcheck source=mnist.sh
. conf/mnist.sh
pixels=3073                   # the basis of a linear model
kernel_options=(--kernel "gaussian o pca:200" --sampling orthogonal --precondition 300)
deformed=false                # an image has three planes
