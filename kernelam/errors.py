"""The one exception a user is meant to see."""


class KernelamError(Exception):
    """One sentence: what is wrong, in which file, at which utterance, what to do.

    The command line prints it and exits with status 1; anything else that escapes is a bug.
    """
