# shellcheck shell=bash disable=SC2034
# A look-alike of rectangles-image (cho2009): the models that these declare, and no others.
declarations=(svm)
