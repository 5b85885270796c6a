"""egs/fsdd on part of the recordings: all stages, from sound to word error rates."""

from brief import call, recipe, result

PART = (0, 5, 8, 20, 21, 22, 23, 24)  # of the recordings of each digit by each speaker


def test_all_stages(root, corpora, tmp_path):
    folder = recipe(root, "fsdd", tmp_path / "s5")
    part = tmp_path / "corpus"
    part.mkdir()
    for path in (corpora / "fsdd").rglob("*.wav"):
        if int(path.stem.split("_")[2]) in PART:
            (part / path.name).symlink_to(path)
    call(folder, ["./run.sh", "--corpus", str(part), "--nj", "1"])
    for model in ("tri3", "kernel", "dnn"):
        found = result(folder, model)
        assert found["utterances"] == 60
        assert found["rate"] < 0.1, model
    assert "test WER %" in (folder / "RESULTS.md").read_text()
