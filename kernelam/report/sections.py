"""The parts of the page of results, each HTML, or empty where the experiments have nothing to show: tables."""

import re
from collections.abc import Sequence
from html import escape

from kernelam.report.experiments import Run, names, system
from kernelam.report.results import LAYOUTS, Results
from kernelam.report.tables import spread


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A number in ** is strong, as in Markdown."""

    def line(cells: Sequence[str], tag: str) -> str:
        escaped = (escape(cell).replace("/", "/<wbr>") for cell in cells)  # paths may break there
        texts = (re.sub(r"^\*\*([\d.]+)\*\*", r"<strong>\1</strong>", text) for text in escaped)
        return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in texts)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    whole = f"<table><thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0">{whole}</div>'


def section(title: str, note: str, *parts: str) -> str:
    body = "".join(parts)
    return remark(title, note, body) if body else ""


def remark(title: str, note: str, body: str = "") -> str:
    return f"<section><h2>{escape(title)}</h2><p>{escape(note)}</p>{body}</section>"


def numbered(results: Results) -> list[tuple[int, Run]]:
    """All runs, with the number of their experiment, which is that of their colour."""
    return [(number, run) for number, runs in enumerate(results.experiments) for run in runs]


def name_of(number: int, results: Results) -> str:
    return f"{number + 1} · {names(results.experiments)[number]}"


def title_of(number: int, run: Run) -> str:
    """Of one run among several of an experiment."""
    return f"{number + 1} · {system(run.about)} ({run.folder.name})"


def rate_of(run: Run) -> float:
    return 100 * float(run.test["rate"])


def rate_title(results: Results) -> str:
    return f"{results.sets[1]} {results.rate} %"


def conditions(results: Results) -> str:
    tuned, tested = results.sets
    items = "".join(f"<li>{escape(line)}</li>" for line in results.conditions)
    told = f"<p><strong>{escape(results.remark)}</strong></p>" if results.remark else ""
    return (
        f"{told}<p>{escape(f'The weights of decoding are tuned on {tuned}; results are those of {tested}.')}</p>"
        f'<details class="conditions"><summary>Software and machines</summary><ul>{items}</ul></details>'
    )


def errors(results: Results) -> str:
    rows = [[name_of(number, results), *row[1:]] for number, row in enumerate(results.errors.rows)]
    return section("Error rates", results.notes, table(results.errors.header, rows))


def training(results: Results) -> str:
    rows = []
    trained = [(number, runs) for number, runs in enumerate(results.experiments) if runs[0].trained]
    for (number, runs), row in zip(trained, results.training.rows, strict=True):
        wer = spread([rate_of(run) for run in runs], ".2f", bold=True)
        rows.append([name_of(number, results), wer, *row[1:], " ".join(str(run.folder) for run in runs)])
    header = ["system", rate_title(results), *results.training.header[1:], "directory"]
    note = "CE (cross-entropy), entropy and ERLL, their sum, are of heldout frames, in nats."
    return section("Metrics and training", f"{note} {results.costs}", table(header, rows))


def papers(results: Results) -> str:
    told = results.layouts
    parts = (f"<div><h3>{escape(name)}</h3>{table(one.header, one.rows)}</div>" for name, one in told.tables)
    return remark(LAYOUTS, told.note, f'<div class="beside">{"".join(parts)}</div>') if told.note else ""


def methods(results: Results) -> str:
    return "".join(section(title, note, table(one.header, one.rows)) for title, note, one in results.of_methods)


def failed(results: Results) -> str:
    told = results.failures.items()
    logs = [f"<h3>{escape(name)}</h3><pre>{escape(chr(10).join(lines))}</pre>" for name, lines in told]
    return section("Failed", "Experiments without a result, each with the last lines of its log.", *logs)
