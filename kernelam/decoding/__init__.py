"""Priors, likelihoods, decoders, lattices, forced alignment."""
