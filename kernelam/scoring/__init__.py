"""Alignment of words, error rates, weight tuning, significance."""
