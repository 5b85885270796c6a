"""The one exception a user is meant to see."""

HEAD, TAIL = 600, 300  # characters of a sentence that are shown of a longer one


class KernelamError(Exception):
    """One sentence: what is wrong, in which file, at which utterance, what to do.

    The command line prints it and exits with status 1; anything else that escapes is a bug. What it quotes of a file
    may be anything: it is shown in one line of readable length, and without what a terminal would obey.
    """

    def __init__(self, sentence: str = "") -> None:
        plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(sentence.splitlines()))
        super().__init__(plain if len(plain) <= HEAD + TAIL else f"{plain[:HEAD]} … {plain[-TAIL:]}")
