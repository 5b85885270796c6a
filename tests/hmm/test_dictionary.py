from collections.abc import Callable
from pathlib import Path

import pytest

from kernelam.errors import KernelamError
from kernelam.hmm.dictionary import Dictionary, Pronunciation


def test_both_lexicons(dict_dir: Callable[..., Path]) -> None:
    assert Dictionary.load(dict_dir()).lexicon[1] == Pronunciation("ab", 1.0, ("a", "b"))
    with_probabilities = dict_dir(lexiconp="ab 0.5 a b\nab 1.0\tb a\n", lexicon=None)
    assert [entry.probability for entry in Dictionary.load(with_probabilities).lexicon] == [0.5, 1.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lexicon": None}, "no such file .*lexicon.txt"),
        ({"lexicon": ""}, "lexicon.txt is empty"),
        ({"lexicon": "ab a b\nx\n"}, "lexicon.txt, line 2: x has no phones"),
        ({"lexicon": "ab a q\n"}, "lexicon.txt, line 1: q in the pronunciation of ab is not in"),
        ({"lexicon": "ab a b\nc c\nab a b\n"}, "lexicon.txt, line 3: ab has this pronunciation already in line 1"),
        ({"lexicon": "ab a b\n\n"}, "lexicon.txt, line 2: empty line"),
        ({"lexicon": "<s> a\n"}, "line 1: <s> is reserved"),
        ({"lexicon": "</s> a\n"}, "line 1: </s> is reserved"),
        ({"lexicon": "<eps> a\n"}, "line 1: <eps> is reserved"),
        ({"lexicon": "#0 a\n"}, "line 1: #0 is reserved"),
        ({"lexiconp": "ab a b\n"}, "lexiconp.txt, line 1: 'a' is not a pronunciation probability"),
        ({"lexiconp": "ab 1.5 b\n"}, "'1.5' is not a pronunciation probability"),
        ({"lexiconp": "ab 1.0\n"}, "line 1: ab has no phones"),
        ({"silence_phones": None}, "no such file .*silence_phones.txt"),
        ({"silence_phones": ""}, "silence_phones.txt is empty"),
        ({"nonsilence_phones": "a\nb\na\nc\n"}, "line 3: phone a occurs twice, first in .*line 1"),
        (
            {"nonsilence_phones": "a\nb\nc\nSIL\n"},
            "line 4: phone SIL occurs twice, first in .*silence_phones.txt, line 1",
        ),
        ({"nonsilence_phones": "a_B\n"}, "a_B cannot be a phone"),
        ({"nonsilence_phones": "#1\n"}, "#1 cannot be a phone"),
        ({"nonsilence_phones": "a\n\nb\n"}, "line 2: no phone"),
        ({"optional_silence": "SIL SPN\n"}, "must hold one phone, not 2"),
        ({"optional_silence": "a\n"}, "a is not in .*silence_phones.txt"),
        ({"extra_questions": "a b\nq\n"}, "extra_questions.txt, line 2: q is not in"),
    ],
)
def test_bad_dictionaries(dict_dir: Callable[..., Path], changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(KernelamError, match=message):
        Dictionary.load(dict_dir(**changes))


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(KernelamError, match="no such dictionary directory"):
        Dictionary.load(tmp_path / "none")


def test_not_text(dict_dir: Callable[..., Path]) -> None:
    directory = dict_dir()
    (directory / "lexicon.txt").write_bytes(b"ab a b\n\xff\xfe a\n")
    with pytest.raises(KernelamError, match=r"lexicon\.txt is not UTF-8"):
        Dictionary.load(directory)
