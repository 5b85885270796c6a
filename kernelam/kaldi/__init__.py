"""Readers and writers of Kaldi's files: data directories, arks, alignments, binary streams. Knows no torch."""
