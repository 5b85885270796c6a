"""The decoder's benchmark on the sample: it compares what it says it compares."""

import re


def test_against_the_wheels_decoder(corpora, kernelam):
    sample = corpora / "kaldi-timit-sample"
    done = kernelam(
        "bench", "decoder", "--utterances", 3, "exp/tri1/graph", "exp/tri1", "data/test", cwd=sample
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 utterances, ")
    assert "words the same in 3, other words of a cost no higher in 0, of a higher cost in 0" in done.stdout
    ratio = re.search(r"^ratio: +([0-9.]+)$", done.stdout, re.MULTILINE)
    assert ratio is not None
    assert 0.05 < float(ratio[1]) < 20.0
    oracle = re.search(r"oracle error: [0-9.]+ % \[ (\d+) / (\d+) \]", done.stdout)
    assert oracle is not None
    assert 0 < int(oracle[1]) < 0.3 * int(oracle[2])
