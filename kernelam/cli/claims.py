"""Test the papers' claims on a corpus."""

from pathlib import Path

import click

from kernelam.cli.cells import run_cells, running, tell, variables
from kernelam.cli.values import PATH


@click.command()
@running
@click.option("--output", type=PATH, help="The page that says which claims held; CLAIMS.md or CLAIMS_quick.md.")
@click.option("--quick", is_flag=True, help="At the small scale that the declaration has for this.")
def command(
    cmd: str, given: tuple[str, ...], output: Path | None, cell: int | None, quick: bool, declaration: Path
) -> None:
    """Train and decode what the papers' claims are about, on the corpus and at the scale of DECLARATION, a TOML file,
    and say of each claim whether it held, did not, or is too small to tell.

    What is done and current is skipped; claims that need a cell that failed are not tested, and the rest are.
    """
    from kernelam.claims.study import Study

    study = Study.read(declaration, variables(given), quick)
    if not run_cells(study, ["claims", *(["--quick"] if quick else [])], cmd, given, cell, declaration):
        return
    from kernelam.claims.page import table, write_claims

    told = write_claims(output or Path("CLAIMS_quick.md" if quick else "CLAIMS.md"), study)
    click.echo(table(told.findings).markdown)
    tell(told.failures)
