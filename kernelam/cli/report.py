"""Tables and figures of a set of experiments."""

from pathlib import Path

import click

from kernelam.cli.values import PATH, page_beside
from kernelam.errors import KernelamError


@click.command()
@click.option("--title", required=True)
@click.option("--baseline", type=PATH, required=True, help="The experiment that the others are compared with.")
@click.option(
    "--output",
    type=PATH,
    default=Path("RESULTS.md"),
    help="The tables, a name in .md; a .json of their figures is beside.",
)
@click.option(
    "--html",
    type=PATH,
    help="The page with figures; by default report.html beside RESULTS.md, else the tables' name in .html.",
)
@click.option("--tuned", default="dev", help="The set on which the weights were tuned.")
@click.option("--tested", default="test", help="The set that is reported.")
@click.option("--corpus", help="Set published figures of this corpus beside ours: timit, bn50, bengali, cantonese.")
@click.option("--published", type=PATH, help="Where they are, if not in the file that comes with this program.")
@click.argument("folders", type=PATH, nargs=-1, required=True)
def command(
    title: str,
    baseline: Path,
    output: Path,
    html: Path | None,
    tuned: str,
    tested: str,
    corpus: str | None,
    published: Path | None,
    folders: tuple[Path, ...],
) -> None:
    """Write the results of model directories with scored decode_<tuned> and decode_<tested>: tables, and a page.

    The .json that a report wrote may stand for the directories that it was of, also as the baseline: FILE.json/NAME.
    """
    from kernelam.progress import say
    from kernelam.report.page import write_report
    from kernelam.report.published import FILE, read_published
    from kernelam.report.results import read_results

    beside = page_beside(output)
    html = html or beside
    if html in (output, output.with_suffix(".json")):
        raise KernelamError(
            f"{html} cannot hold the page: the tables or their figures go there; --html is to end in .html"
        )
    if tuned == tested:
        raise KernelamError(f"--tuned and --tested both name {tuned}: weights tuned on a set are not reported on it")
    if published and not corpus:
        raise KernelamError(f"say with --corpus which corpus of {published} is meant")
    figures = read_published(published or FILE, corpus) if corpus else None
    results = read_results(title, list(folders), baseline, (tuned, tested), published=figures)
    write_report(output, html, results)
    say(f"wrote {output}, {output.with_suffix('.json')} and {html}")
