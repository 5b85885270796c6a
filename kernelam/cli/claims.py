"""Test the papers' claims on a corpus."""

from dataclasses import replace
from pathlib import Path

import click

from kernelam.cli.cells import run_cells, running, tell, telling, variables
from kernelam.cli.values import PATH
from kernelam.errors import KernelamError


@click.command(cls=telling("kernelam.claims.study"))
@running
@click.option("--output", type=PATH, help="The page that says which claims held; CLAIMS.md or CLAIMS_quick.md.")
@click.option("--known", type=PATH, help="Outcomes that another run wrote beside its page: their cells are not run.")
@click.option("--quick", is_flag=True, help="At the small scale that the declaration has for this.")
def command(
    cmd: str,
    given: tuple[str, ...],
    output: Path | None,
    known: Path | None,
    cell: int | None,
    quick: bool,
    declaration: Path,
) -> None:
    """Train and decode what the papers' claims are about, on the corpus and at the scale of DECLARATION, a TOML file,
    and say of each claim whether it held, did not, or is too small to tell.

    What is done and up to date is skipped; claims that need a cell that failed are not tested, the others are.
    The results of every cell are kept beside the page, in a file of its name that ends in .json: with --known a study
    continues from there on another machine.
    """
    from kernelam.claims.kept import HEAD, read_kept, signs
    from kernelam.claims.study import Study
    from kernelam.records import check_place

    output = output or Path("CLAIMS_quick.md" if quick else "CLAIMS.md")
    if output.suffix == ".json":
        raise KernelamError(f"{output} cannot hold both the page and the outcomes: --output is to end in .md")
    check_place(output.with_suffix(".json"), HEAD, "outcomes")
    study, made = Study.read(declaration, variables(given), quick), signs(declaration, variables(given), quick)
    kept = read_kept(known, made) if known else {}
    study = replace(study, spared=frozenset(kept))
    itself = ["claims", *(["--quick"] if quick else []), *(["--known", str(known)] if known else [])]
    if not run_cells(study, itself, cmd, given, cell, declaration):
        return
    from kernelam.claims.page import table, write_claims

    told = write_claims(output, study, made, kept)
    click.echo(table(told.findings).markdown)
    tell(told.failures)
