"""The page of results, made of small experiments."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from statistics import correlation

import numpy as np
import pytest
from chromium import Chromium
from safetensors.numpy import save_file
from small_experiments import DNN, GMM, PROVENANCE, REFS, UTT2SPK, experiment

from kernelam.errors import KernelamError
from kernelam.report.correlations import TITLE, _swept
from kernelam.report.evidence import read_alignments, read_epochs, read_selection, read_speakers
from kernelam.report.figures import Axis, Plot
from kernelam.report.page import write_page
from kernelam.report.results import LAYOUTS, read_results
from kernelam.report.sections import numbered
from kernelam.scoring.directory import score_directory
from kernelam.scoring.tuning import Weights

VOID = {"meta", "br", "path", "polyline"}
KERNEL = {
    "kind": "kernel",
    "config": {"kernel": {"name": "gaussian", "sigma": 1.0}, "features": 1000, "bottleneck": 0},
    "input": {"context": [1, 1], "dim": 6},
    "training": {
        "frames": 5000,
        "seconds": 20.0,
        "epochs": 3,
        "search_frames": 1000,
        "options": {"rates": [1.0], "seed": 1, "metric": "ce"},
        "settings": {"selection": "3"},
        "data": [],
    },
}
EPOCHS = [
    {"epoch": 0, "search": [], "ce": 5.0},
    {"epoch": 1, "ce": 2.5, "kept": True, "halved": False},
    {"epoch": 2, "ce": None, "kept": False, "halved": True},
    {"epoch": 3, "ce": 2.25, "kept": True, "halved": True},
]
SELECTION = {"kept": [10, 20], "survival": [0.75, 1.0], "chance": [0.004, 1], "input_weights": [0, 1, 2, 1, 1, 1]}


def kernel(folder: Path, features: int, ce: float, wrong: int, seed: int = 1) -> Path:
    about = json.loads(json.dumps(KERNEL)) | {"seed": seed}
    about["config"]["features"] = about["training"]["settings"]["num_features"] = features
    about["heldout"] = {"ce": ce, "entropy": 1.0, "erll": ce + 1.0, "frame_error": 0.5}
    about["heldout_metrics"] = {
        "capped": {"parameters": [0.01, 1.0], "values": [ce, -0.5 * ce]},
        "top-k": {"parameters": [1.0, 0.5], "values": [ce, wrong**2]},
    }
    experiment(folder, about, wrong)
    (folder / "epochs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in EPOCHS))
    (folder / "selection.json").write_text(json.dumps(SELECTION))
    return folder


@pytest.fixture
def few(tmp_path: Path) -> list[Path]:
    return [experiment(tmp_path / "gmm", GMM, 20), experiment(tmp_path / "dnn", DNN, 4)]


@pytest.fixture
def many(tmp_path: Path, few: list[Path]) -> list[Path]:
    sizes = {1000: (2.5, 8), 2000: (2.25, 5), 4000: (2.2, 6)}
    return few + [kernel(tmp_path / f"k{n}", n, ce, wrong) for n, (ce, wrong) in sizes.items()]


def page_of(folders: list[Path], title: str = "A title", failures: dict[str, list[str]] | None = None) -> Path:
    path = folders[0].parent / "report.html"
    write_page(path, read_results(title, folders, folders[0], failures=failures))
    return path


class Elements(HTMLParser):
    """Counts elements, collects texts by the innermost element, and insists that what is opened is closed."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, str]] = []
        self.counts: dict[str, int] = {}
        self.feed(page.read_text().replace("<wbr>", ""))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop()

    def handle_data(self, data: str) -> None:
        self.found.append((self.open[-1] if self.open else "", data))

    def texts(self, tag: str) -> list[str]:
        return [text for name, text in self.found if name == tag]


def test_sections_are_those_of_which_there_are_data(few: list[Path], many: list[Path]) -> None:
    always = ["Error rates", "Metrics and training", "Error rate against the cost of training"]
    mistakes = ["Worst speakers", "Most confused words", "Alignments"]
    assert Elements(page_of(few)).texts("h2") == [*always, TITLE, *mistakes]
    assert Elements(page_of(many)).texts("h2") == [
        *always[:2],
        LAYOUTS,
        *always[2:],
        "Learning curves",
        TITLE,
        "Number of features",
        "Survival of selected features",
        "Weights of the inputs",
        *mistakes,
    ]
    assert "Number of features" in Elements(page_of(many[:-1])).texts("h2")
    assert "Number of features" not in Elements(page_of(many[:3])).texts("h2")


def test_correlations(tmp_path: Path, many: list[Path]) -> None:
    captions = Elements(page_of(many)).texts("figcaption")
    assert (
        sum("r by" in caption and caption.endswith("n = 4, of 4 models: no evidence") for caption in captions) == 1
    )  # β
    assert (
        sum("r by" in caption and "n = 3, of 3 models: no evidence" in caption for caption in captions) == 2
    )  # the DNN: no sweeps
    more = [kernel(tmp_path / "k8000", 8000, 0.2, 9), kernel(tmp_path / "k9000", 9000, 0.1, 10)]
    enough = [caption for caption in Elements(page_of([*many, *more])).texts("figcaption") if "n = " in caption]
    assert sum(caption.endswith(("n = 5", "n = 6")) for caption in enough) == len(enough)
    assert any(": r = −0." in caption for caption in enough)
    runs = [(n, run) for n, run in numbered(read_results("A title", many, many[0])) if run.about["kind"] == "kernel"]
    r = correlation([2.5, 2.25, 2.2], [20, 12.5, 15])
    assert dict(_swept("capped", runs)) == pytest.approx({0.01: r, 1.0: -r})
    squares = correlation([64, 25, 36], [20, 12.5, 15])
    assert dict(_swept("top-k", runs)) == pytest.approx({0.5: squares, 1.0: r})
    page = Elements(page_of(many[:4]))
    assert any(
        "Capped and top-k log loss are left out: 2 of the 3 models that tell them." in text for text in page.texts("p")
    )
    page = Elements(page_of(many[:3]))
    assert "It takes 3 models with heldout metrics; here are 2." in page.texts("p")
    # seeds are no models
    seeds = [kernel(tmp_path / f"seed{n}", 500, 2.0 + n, n, seed=n) for n in range(3)]
    assert "It takes 3 models with heldout metrics; here are 1." in Elements(page_of(seeds)).texts("p")


def test_numbers_are_those_of_the_inputs(many: list[Path]) -> None:
    page = Elements(page_of(many, failures={"cell 3": ["out of <memory>"]}))
    cells = page.texts("td")
    assert page.texts("strong") == ["50.00", "10.00", "20.00", "12.50", "15.00"] * 2
    assert cells[0] == "1 · GMM, 300 Gaussians"
    assert {"12,345", "5,000", "3", "2.250", "3.250", "2 × 1,000", "61"} <= set(cells)
    titles = page.texts("title")
    assert titles[0] == "A title"
    assert "3 · Gaussian kernel, 1000 selected features (k1000): training, seconds 20, test WER % 20.00" in titles
    # of each of three kernels: the revert that diverged, and both halvings
    assert titles.count("epoch 2: diverged, reverted") == titles.count("epoch 2: diverged, rate halved") == 3
    assert titles.count("epoch 3: CE 2.2500, rate halved") == titles.count("epoch 1: CE 2.5000") == 3
    assert sum(title.endswith("round 1: of 10 kept, 75.0 % survive") for title in titles) == 3
    assert titles.count("frame -1, coordinate 1: 1.00") == titles.count("frame 0, coordinate 0: 2.00") == 1
    ces, rates = [1.2345, 2.5, 2.25, 2.2], [10, 20, 12.5, 15]
    captions = page.texts("figcaption")
    assert f"CE: r = {correlation(ces, rates):.2f}, n = 4, of 4 models: no evidence" in captions
    assert {"training, seconds (log scale)", "features D (log scale)", "test WER %"} <= set(page.texts("text"))
    assert page.texts("pre") == ["out of <memory>"]
    assert {"Learning curves", "Failed"} <= set(page.texts("h2"))


def test_lines_of_the_number_of_features_are_of_one_kernel_and_trick(tmp_path: Path, many: list[Path]) -> None:
    by_erll = [kernel(tmp_path / f"r{n}", n, 2.0, 4) for n in (1000, 2000)]
    for folder in by_erll:
        record = json.loads((folder / "model.json").read_text())
        record["training"]["options"] |= {"schedule": "halving", "metric": "erll"}
        (folder / "model.json").write_text(json.dumps(record))
    text = page_of([*many, *by_erll]).read_text()
    drawn = text[text.index("<h2>Number of features") : text.index("<h2>Survival")]
    assert re.findall(r"</svg>([^<]*)</li>", drawn) == [
        "Gaussian, NT, selected features",
        "Gaussian, R, selected features",
    ]
    lines = re.findall(r'<polyline class="(c\d)" points="([^"]*)"', drawn)
    assert [(colour, len(points.split())) for colour, points in lines] == [("c0", 3), ("c1", 2)] * 2


def test_selections_are_drawn_by_kernel_in_the_mean_of_runs(tmp_path: Path) -> None:
    runs = [kernel(tmp_path / f"{n}", 1000, 2.0, 4, seed=n) for n in range(36)]
    for number, folder in enumerate(runs):
        weights = [float(place == number) for place in range(440)]
        told = {"kept": [10] * 50, "survival": [0.5] * 50, "chance": [0.1] * 50, "input_weights": weights}
        (folder / "selection.json").write_text(json.dumps(told))
    path = page_of(runs)
    captions = Elements(path).texts("figcaption")
    assert (
        captions.count("Gaussian kernel, 36 runs")
        == captions.count("Gaussian kernel, 36 runs: from 0 (pale) to 0.03")
        == 1
    )
    assert path.stat().st_size < 1.5e6


def test_confused_phones_are_of_the_best_model_that_tells_them(many: list[Path]) -> None:
    for folder, count in ((many[2], 7), (many[4], 9)):
        record = json.loads((folder / "model.json").read_text())
        (folder / "model.json").write_text(json.dumps(record | {"confusions": [["a", "b", count], ["b", "<c>", 1]]}))
    text = page_of(many).read_text()
    section = text[text.index("Most confused phones") : text.index("<h2>Alignments")]
    assert "Of 5 · Gaussian kernel, 4000 selected features (k4000): heldout frames" in section
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", section)][1:]
    assert rows == [["a", "b", "9"], ["b", "&lt;c&gt;", "1"]]


def test_mistakes_are_those_of_the_best_system(tmp_path: Path, few: list[Path]) -> None:
    hyps = {utt: words[:] for utt, words in REFS.items()}
    hyps["s0-00"], hyps["s0-02"], hyps["s1-01"] = ["one", "too"], ["<b>", "one", "too"], ["two"]
    score_directory(few[1] / "decode_test", REFS, {Weights(9, 0.5): hyps}, UTT2SPK, tuned_on=few[1] / "decode_dev")
    page = page_of(few)
    text, elements = page.read_text(), Elements(page)
    speakers = text[text.index("Worst speakers") : text.index("Most confused words")]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", speakers)][1:]
    assert rows == [
        ["s0", "10", "20", "2", "0", "1", "15.00", "50.00"],
        ["s1", "10", "20", "0", "1", "0", "5.00", "50.00"],
    ]
    assert "<tr><td>two</td><td>too</td><td>2</td></tr>" in text
    assert "<tr><td>&lt;b&gt;</td><td>1</td></tr>" in text
    assert "3 of 20 utterances have errors" in text
    assert elements.texts("b") == ["s0-02", "s0-00", "s1-01"]
    assert elements.texts("small")[0] == "2 wrong, 2 words"
    assert "<br><ins>&lt;b&gt;</ins> one <span><del>two</del> <ins>too</ins></span></p>" in text
    assert "<br><del>one</del> two</p>" in text


def test_the_best_system_is_that_of_the_set_where_weights_were_tuned(few: list[Path]) -> None:
    path = few[1] / "decode_dev/scoring_kaldi/result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rate": 0.3}))  # though it is better on test
    page = Elements(page_of(few))
    assert "Of 1 · GMM, 300 Gaussians (gmm), the best on dev: 2 of 2." in page.texts("p")


def test_only_the_worst_utterances_are_shown(few: list[Path]) -> None:
    refs = {f"s-{n:03d}": ["a"] * 3 for n in range(210)}
    hyps = {utt: ["b"] * (1 if number < 10 else 3) for number, utt in enumerate(refs)}
    for folder in few:
        for part in ("dev", "test"):
            speakers = dict.fromkeys(refs, "s")
            score_directory(
                folder / f"decode_{part}",
                refs,
                {Weights(9, 0.5): hyps},
                speakers,
                folder / "decode_dev" if part == "test" else None,
            )
    page = Elements(page_of(few))
    assert len(page.texts("b")) == 200
    assert any(
        "210 of 210 utterances have errors, of which the 200 with the most are shown" in t for t in page.texts("p")
    )


def test_texts_of_files_are_not_markup(tmp_path: Path) -> None:
    evil = '<script>alert("1")</script>&amp;'
    about = {**DNN, "config": {**DNN["config"], "activation": evil}}
    folders = [experiment(tmp_path / "gmm", GMM, 20), experiment(tmp_path / "<i>&", about, 4)]
    record = json.loads((folders[1] / "model.json").read_text())
    record["provenance"] = {**PROVENANCE, "git": evil}
    (folders[1] / "model.json").write_text(json.dumps(record))
    path = page_of(folders, evil, {evil: [evil]})
    page, text = Elements(path), path.read_text()
    assert "script" not in page.counts
    assert "i" not in page.counts
    assert [*page.texts("h1"), *page.texts("h3"), *page.texts("pre")] == [evil] * 3
    assert f"2 · DNN, 4 × 1000 {evil}" in page.texts("td")
    assert not re.search(r"https?:|src=|url\(|@import|href=|javascript", text)


def test_damaged_stories_are_sentences(tmp_path: Path) -> None:
    folder = kernel(tmp_path / "k", 1000, 2.0, 3)
    for text in ('{"epoch": 0', '{"epoch": 0}', "[1]", '{"epoch": 0, "ce": "low"}'):
        (folder / "epochs.jsonl").write_text(text)
        with pytest.raises(KernelamError, match=r"epochs\.jsonl is damaged: "):
            read_epochs(folder)
    for change in (
        {"kept": [1]},
        {"survival": None},
        {"chance": ["x", 1]},
        {"input_weights": []},
        {"chance": [-1, 1]},
        {"survival": [float("nan"), 1]},
    ):
        (folder / "selection.json").write_text(json.dumps(SELECTION | change))
        with pytest.raises(KernelamError, match=r"selection\.json is damaged: "):
            read_selection(folder)
    details = folder / "decode_test/scoring_kaldi/wer_details"
    (details / "per_utt").write_text("u ref a b\nu hyp a\n")
    with pytest.raises(KernelamError, match=r"the columns of u differ in number; score .*decode_test again"):
        read_alignments(folder / "decode_test")
    (details / "per_utt").write_text("u ref  a\u00a0b c\nu hyp  a\u3000b \t c\n")  # which are no spaces to Kaldi
    assert read_alignments(folder / "decode_test") == {"u": [("a\u00a0b", "a\u3000b"), ("c", "c")]}
    (details / "per_spk").write_text("SPEAKER id\ns\u00a0t raw 1 2 2 0 0 0 0 0\nSUM raw 1 2\n")
    assert [one.name for one in read_speakers(folder / "decode_test")] == ["s\u00a0t"]
    (details / "per_spk").write_text("SPEAKER id\ns raw 1 2\nSUM raw 1 2\n")
    with pytest.raises(KernelamError, match="per_spk is damaged: score"):
        read_speakers(folder / "decode_test")


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis("", 16.77, 17.56), [16.8, 17.0, 17.2, 17.4]),
        (Axis("", 0.86, 3.14, whole=True), [1, 2, 3]),
        (Axis("", 450, 2100, log=True), [500, 1000, 2000]),
        (Axis("", 3e-21, 1.0, log=True), [1e-18, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1.0]),
        (Axis("", 98, 105, log=True), [98, 100, 102, 104]),
    ],
)
def test_ticks(axis: Axis, ticks: list[float]) -> None:
    assert sorted(axis.ticks) == pytest.approx(ticks, rel=1e-9)


def test_marks_are_where_their_values_are() -> None:
    plot = Plot(Axis("x", 1, 100, log=True), Axis("y", 0, 4))
    plot.line([(1, 0), (10, 2), (100, 4)], 0)
    points = [tuple(map(float, p.split(","))) for p in re.findall(r'points="(.*?)"', plot.svg(""))[0].split()]
    (left, bottom), middle, (right, top) = points
    assert left < right
    assert bottom > top
    assert middle == pytest.approx(((left + right) / 2, (top + bottom) / 2))


def test_labels_keep_clear_of_marks() -> None:
    plot = Plot(Axis("", 0, 300), Axis("", 0, 180))  # a unit is a point
    plot.mark("dot", 100, 100, 0, "", "first")
    plot.mark("dot", 110, 108, 0, "")
    alone, (mark, other) = Plot(plot.x, plot.y), re.findall(r"translate\((\S+) (\S+)\)", plot.svg(""))
    alone.mark("dot", 100, 100, 0, "", "first")
    label = r'x="(\S+)" y="(\S+)" text-anchor="middle">first'
    assert float(re.search(label, alone.svg(""))[1]) > float(mark[0])  # type: ignore[index]
    assert float(re.search(label, plot.svg(""))[1]) < float(mark[0]) < float(other[0])  # type: ignore[index]


def test_labels_keep_clear_of_labels() -> None:
    plot = Plot(Axis("", 0, 300), Axis("", 0, 180))
    plot.mark("dot", 100, 100, 0, "", "first")
    plot.point(100, 100, 0.5, "", "second")  # in the same place
    places = re.findall(r'x="(\S+)" y="(\S+)" text-anchor="middle">(?:first|second)', plot.svg(""))
    assert len(set(places)) == 2
    assert "hsl(180 65% 45%)" in plot.svg("")


def class_means(folder: Path, seed: int, count: int = 24) -> None:
    rng = np.random.default_rng(seed)
    arrays = {
        "classes": np.arange(count),
        "frames": np.ones(count, np.float32),
        "means": rng.standard_normal((count, 5)).astype(np.float32),
    }
    about = {"phones": [f"p{number % 4}" for number in range(count)]}
    save_file(arrays, folder / "class_means.safetensors", {"about": json.dumps(about)})


def test_places_of_classes(many: list[Path]) -> None:
    class_means(many[1], 1)
    class_means(many[2], 2)
    page = Elements(page_of(many))
    captions = [text for text in page.texts("figcaption") if "t-SNE" in text or "principal" in text]
    kernels = "3 · Gaussian kernel, 1000 selected features (k1000)"  # the first of equals on dev
    assert captions == [
        f"{name}, {way}"
        for way in ("principal components", "t-SNE")
        for name in ("2 · DNN, 4 × 1000 tanh (dnn)", kernels)
    ]
    assert page.texts("title").count("class 5, p1") == 4
    assert page.texts("text").count("p3") == 4
    assert any(
        text.endswith("The t-SNE of the kernel model starts from that of the network.") for text in page.texts("p")
    )
    class_means(many[2], 2, 20)
    assert not any("starts from that of the network" in text for text in Elements(page_of(many)).texts("p"))
    class_means(many[2], 2, 5)
    captions = Elements(page_of(many)).texts("figcaption")
    assert sum("t-SNE" in caption for caption in captions) == 1
    (many[1] / "class_means.safetensors").write_bytes(b"damaged")
    with pytest.raises(KernelamError, match=r"class_means\.safetensors is damaged: "):
        page_of(many)


def test_command_writes_both(tmp_path: Path, few: list[Path], kernelam: Callable) -> None:
    command = ["report", "--title", "T", "--baseline", few[0], "--output", tmp_path / "out/RESULTS.md", *few]
    assert kernelam(*command).returncode == 0
    assert Elements(tmp_path / "out/report.html").texts("h1") == ["T"]
    assert kernelam(*command, "--html", tmp_path / "page.html").returncode == 0
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "out/report.html").read_bytes()
    clash = kernelam(*command, "--html", tmp_path / "out/RESULTS.md")
    assert (clash.returncode, "RESULTS.md cannot hold the page: the tables or" in clash.stderr) == (1, True)


def test_reports_of_one_folder_do_not_write_over_each_other(
    tmp_path: Path, few: list[Path], kernelam: Callable
) -> None:
    out = tmp_path / "out"
    for name in ("RESULTS", "A"):
        ran = kernelam("report", "--title", name, "--baseline", few[0], "--output", out / f"{name}.md", *few)
        page = out / ("report.html" if name == "RESULTS" else "A.html")
        assert (ran.returncode, ran.stderr) == (0, f"wrote {out}/{name}.md, {out}/{name}.json and {page}\n")
    names = ["A.html", "A.json", "A.md", "RESULTS.json", "RESULTS.md", "report.html"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert (Elements(out / "A.html").texts("h1"), Elements(out / "report.html").texts("h1")) == (["A"], ["RESULTS"])
    bare = kernelam("report", "--title", "T", "--baseline", few[0], "--output", out / "R", *few)
    assert (bare.returncode, "out/R cannot hold the tables, the page and the figures: " in bare.stderr) == (1, True)
    both = kernelam(
        "report", "--title", "T", "--baseline", few[0], "--output", out / "R", "--html", out / "R.html", *few
    )
    assert both.stderr == bare.stderr
    assert sorted(path.name for path in out.iterdir()) == names


def test_in_a_browser(tmp_path: Path, many: list[Path], need_program: Callable[[str], str]) -> None:
    long = "x" * 300
    class_means(many[1], 1)
    class_means(many[2], 2)
    page = page_of(many, failures={long: [long]})
    with Chromium(need_program("chromium"), tmp_path / "profile") as browser:
        for width in (390, 1440):
            browser.open(page, width)
            browser.value("document.querySelectorAll('details').forEach(one => one.open = true)")
            assert browser.value("document.documentElement.scrollWidth <= innerWidth"), width
            assert browser.value("innerWidth") == width
            sizes = "[...document.querySelectorAll('figure svg')].map(one => one.getBoundingClientRect())"
            drawn = browser.value(f"{sizes}.map(one => [one.left, one.right, one.height])")
            assert len(drawn) == 3 + 3 + 7 + 2 + 1 + 1 + 4
            assert all(left >= 0 and right <= width and height > 100 for left, right, height in drawn)
            # text of figures, as it is scaled, is no smaller than small print
            assert browser.value(f"Math.min(...{sizes}.map(one => 12 * one.width / 360))") >= 11
    of = {
        name: [e["params"] for e in browser.events if e["method"] == name]
        for name in {e["method"] for e in browser.events}
    }
    assert [request["request"]["url"] for request in of["Network.requestWillBeSent"]] == [page.as_uri()] * 2
    for name in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
        assert name not in of
