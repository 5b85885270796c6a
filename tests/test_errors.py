from kernelam.errors import KernelamError


def test_an_error_is_one_line_that_a_terminal_can_show() -> None:
    assert str(KernelamError("a file\nwith \x1b[31m red\t\u2028end")) == r"a file with \x1b[31m red\t end"
    assert str(KernelamError("Bücher, 北京: – no such file")) == "Bücher, 北京: – no such file"


def test_a_long_one_keeps_its_ends() -> None:
    shown = str(KernelamError(f"data/text, line 2: {'x' * 10_000} is no word"))
    assert len(shown) < 1000
    assert shown.startswith("data/text, line 2: x")
    assert shown.endswith("x is no word")
