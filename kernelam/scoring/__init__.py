"""Alignment of token sequences, error rates, weight tuning, significance."""
