"""Sound to features: MFCC, filterbank, CMVN, deltas, splicing."""
