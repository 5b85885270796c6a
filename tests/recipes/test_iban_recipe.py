"""egs/iban from sound on its look-alike, in little; and what it does with a Kaldi experiment."""

import subprocess

from brief import call, recipe, result


def test_all_stages(root, tmp_path):
    folder = recipe(root, "iban", tmp_path)
    call(
        folder,
        ["local/iban/make_lookalike.sh", "--nj", "1", "corpus"],
        ["./run.sh", "--corpus", "corpus", "--size", "brief", "--nj", "1"],
    )
    for model in ("tri3", "kernel", "dnn"):
        assert result(folder / "sound", model)["rate"] < 0.3, model
    assert "test WER %" in (folder / "SOUND.md").read_text()


def test_an_experiment_of_kaldi_has_an_entrance_of_its_own(root, tmp_path):
    (tmp_path / "exp/gmm_ali_train").mkdir(parents=True)
    run = [root / "egs/iban/s5/run.sh", "--corpus", "."]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(str(root / "egs/iban/s5/run_kaldi.sh"))
    assert "exp/gmm_ali_train/final.mdl" in done.stderr
