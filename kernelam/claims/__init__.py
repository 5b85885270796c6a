"""What the papers claim, tested on a corpus."""
