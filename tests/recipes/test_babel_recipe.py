"""egs/babel on look-alikes of both packs, in a shortened form: all stages, to an error rate."""

import pytest
from brief import call, recipe, result

CODES = {"bengali": "OP1_103", "cantonese": "BP_101"}


@pytest.mark.parametrize(
    ("language", "options", "units", "limit"),
    [
        ("bengali", (), "words (unmarked)", 0.3),
        ("cantonese", ("--pieces", "80"), "characters (joined, unmarked, noascii)", 0.3),
    ],
)
def test_all_stages(root, tmp_path, language, options, units, limit):
    for package in ("espeakng_loader", "sentencepiece"):
        pytest.importorskip(package)
    folder = recipe(root, "babel", tmp_path)
    call(
        folder,
        ["local/babel/make_lookalike.sh", "--nj", "1", "--language", language, "--conversations", "5", "corpus"],
        ["./run.sh", "--corpus", "corpus", "--language", language, "--size", "brief", "--nj", "1", *options],
    )
    assert (folder / f"corpus/IARPA_BABEL_{CODES[language]}/conversational/dev/audio").is_dir()
    for model in ("tri3", "gaussian", "dnn_tanh", "combination"):
        found = result(folder / language, model)
        assert found["units"] == units
        assert found["rate"] < (limit if model == "combination" else 0.9), model
    table = (folder / language / "RESULTS.md").read_text()
    assert f"test {'WER' if language == 'bengali' else 'CER'} %" in table
