"""egs/timit on its look-alike, in little: all stages, a system of each paper, to phone error rates."""

from brief import call, recipe, result


def test_all_stages(root, tmp_path):
    folder = recipe(root, "timit", tmp_path)
    call(
        folder,
        ["local/timit/make_lookalike.sh", "--nj", "1", "--speakers", "8", "corpus"],
        ["./run.sh", "--corpus", "corpus", "--size", "brief", "--nj", "1"],
    )
    rates = {}
    for model in ("tri3", "selected", "dnn_tanh", "blocks", "ridge", "multilayer", "pursuit", "combination"):
        found = result(folder, model)
        assert found["units"].startswith("tokens of a map")
        rates[model] = found["rate"]
    assert max(rates[name] for name in ("tri3", "dnn_tanh", "ridge", "combination")) < 0.3, rates
    assert max(rates.values()) < 0.9, rates
    assert "test TER %" in (folder / "RESULTS.md").read_text()
