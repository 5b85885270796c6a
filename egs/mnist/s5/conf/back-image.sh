# shellcheck shell=bash disable=SC2034
# A look-alike of mnist-back-image (cho2009): the models that these declare, and no others.
declarations=(multilayer references)
