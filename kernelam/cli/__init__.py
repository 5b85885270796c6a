"""The `kernelam` command: one click command a file, loaded only when it is called."""

import importlib
import os
import re
import signal
import sys
import time
import traceback
from itertools import takewhile
from typing import NoReturn

import click

from kernelam import __version__
from kernelam.cli.mistakes import sentence
from kernelam.errors import KernelamError
from kernelam.kaldi.pipes import forbid
from kernelam.ranks import end_with_starter, is_first, number, world

COMMANDS = {
    "align": "Align transcripts with frames by a trained model.",
    "bench": "Measure speed against a named peer.",
    "claims": "Test the papers' claims on a corpus.",
    "combine": "Combine trained models into one.",
    "data": "Copy, combine, fix, split, subset data directories.",
    "decode": "Turn features into lattices with a model and a graph.",
    "doctor": "Report what this machine has and what is missing.",
    "features": "Sound to features: mfcc, fbank, cmvn.",
    "forward": "Write log-likelihoods of every frame.",
    "gmm": "Train Gaussian mixture HMMs.",
    "graph": "Lang directories and decoding graphs.",
    "grid": "Run a declared set of experiments.",
    "labels": "Convert alignments, measure how good they are, draw them.",
    "lattice": "Best paths, N-best, confidences, word times, oracles of lattices.",
    "lm": "Estimate, prune, interpolate and evaluate n-gram models.",
    "once": "Run a command unless its outputs are up to date.",
    "report": "Tables of results of a set of experiments.",
    "score": "Error rates of decoded lattices.",
    "together": "Run a command in several processes that share its work.",
    "train": "Train acoustic models.",
    "transcribe": "Words of sound files, with times and confidences.",
    "validate": "Check data directories and archives of likelihoods.",
}


FLAGS = ("--debug", "--no-pipes")
"""What may stand before a command."""
SHARED = ("train kernel ", "train dnn ", "forward ", "bench rank ")
"""What several processes of torchrun can do together."""


class LazyGroup(click.Group):
    """Imports kernelam.cli.<name> and takes its `command` when <name> is called: `validate` never loads torch."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"kernelam.cli.{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("--no-pipes", is_flag=True, help="Refuse scp entries that are commands, as KERNELAM_NO_PIPES=1 does.")
def kernelam(debug: bool, no_pipes: bool) -> None:
    """Kernel acoustic models for Kaldi-style speech recognition."""
    if no_pipes:
        forbid()


def main() -> NoReturn:
    """Run the command line; an error is one sentence on standard error and exit status 1."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if hasattr(signal, "SIGXFSZ"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file-size limit shall be an OSError, not a death
    end_with_starter()
    if world() > 1:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever waits for others would not come to raise an exception
    debug = "--debug" in takewhile(FLAGS.__contains__, sys.argv[1:])
    try:
        if world() > 1 and not " ".join([*_words(), ""]).startswith(SHARED):
            shared = " and ".join(", ".join(map(str.strip, SHARED[:3])).rsplit(", ", 1))
            raise KernelamError(f"this command runs in one process; several can share only {shared}")
        kernelam.main(prog_name="kernelam", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.UsageError as error:
        said = sentence(error)
        no_sub_command = said.startswith("Usage:")
        _fail(said if no_sub_command else f"{error.ctx.command_path if error.ctx else _command()}: {said}", debug)
    except (KernelamError, OSError, MemoryError) as error:
        said = str(error) or type(error).__name__
        if isinstance(error, OSError) and error.strerror:
            said = f"{error.filename or 'input/output'}: {error.strerror}"
        _fail(f"{_command()}: {said}", debug)
    except (KeyboardInterrupt, click.Abort):
        _fail("kernelam: interrupted", debug)
    except Exception as error:
        if world() > 1 and (re.search("gloo|NCCL", str(error)) or type(error).__name__.startswith("Dist")):
            why = KernelamError(str(error).split(". ")[0])
            _fail(f"{_command()}: another process, with which this one works, is gone ({why})", debug, after=10.0)
        if match := re.search(r"ried to allocate ([\d.]+ \w+)", str(error)):  # so PyTorch says it, not by a MemoryError
            _fail(f"{_command()}: memory has run out: {match[1]} more are not to be had", debug)
        _fail(f"kernelam: internal error, please report it ({type(error).__name__}: {error})", True)
    sys.exit(0)


def _words() -> list[str]:
    return [word for word in sys.argv[1:] if word not in FLAGS]


def _command() -> str:
    """`kernelam`, the command and the sub-command that were called."""
    words = _words()
    module = sys.modules.get(f"kernelam.cli.{words[0]}") if words and words[0] in COMMANDS else None
    if module is None:
        return "kernelam"
    is_sub_command = words[1:] and words[1] in getattr(module.command, "commands", {})
    return " ".join(["kernelam", *words[: 2 if is_sub_command else 1]])


def _fail(sentence: str, debug: bool, after: float = 0.0) -> NoReturn:
    """Of processes that work together, the first one tells first what is wrong, then those that know more than it, then
    those that only know that another one has ended: whoever started them ends them all once one has told."""
    time.sleep(after or (0.0 if is_first() else 5.0))
    if not is_first():
        sentence = f"{sentence} (process {number() + 1} of {world()})"
    if debug:
        traceback.print_exc()
    print(sentence, file=sys.stderr, flush=True)
    sys.stderr.flush()
    os._exit(1)  # threads or a broken standard output must not change the status
