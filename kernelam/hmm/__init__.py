"""Topology, transition model, context tree, lang directories, decoding graphs."""
