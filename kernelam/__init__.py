"""Kernel acoustic models for Kaldi-style speech recognition."""

__version__ = "0.1.0"
