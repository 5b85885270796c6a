"""The packed frame store: features of a set as one memory-mapped array, labels beside it."""
