"""Run a command in several processes that share its work."""

import sys

import click

from kernelam.cli.values import COUNT, POSITIVE
from kernelam.progress import warn


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--restarts", type=COUNT, default=3, help="How often training goes on when one is lost.")
@click.argument("processes", type=POSITIVE)
@click.argument("command", nargs=-1, required=True)
def command(restarts: int, processes: int, command: tuple[str, ...]) -> None:
    """Run `kernelam COMMAND` (train kernel, train dnn or forward) in PROCESSES processes of this machine, as torchrun
    does: they share the features of a kernel model, or the frames of a network's batches.

    They share the threads of OMP_NUM_THREADS, or the cores. Where one is lost that trains, all start again from the
    last checkpoint; a command that ends with an error ends them. On several machines, use torchrun itself, with
    `-m kernelam COMMAND`.
    """
    from kernelam.launch import Lost, launch

    trains = "train" in command[:1]  # what forward has written to a pipe cannot be taken back
    for attempt in range(restarts + 1):
        try:
            sys.exit(launch(processes, command))
        except Lost as lost:
            if attempt == restarts or not trains:
                raise
            warn(f"{lost}: starting all {processes} again")
