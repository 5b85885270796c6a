"""Mistakes on the command line, in the words that utils/options.sh has for them."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from kernelam.errors import KernelamError


def run(command: click.Command) -> None:
    """Call the command of a script of local/ with its arguments; an error is a sentence and exit status 1."""
    name = Path(sys.argv[0]).name
    try:
        command.main(standalone_mode=False)
    except click.UsageError as error:
        sys.exit(f"{name}: {sentence(error)}")
    except (KernelamError, OSError) as error:
        sys.exit(f"{name}: {error}")


def sentence(error: click.UsageError) -> str:
    """What is wrong, and what would be right."""
    said = error.format_message()
    if isinstance(error, click.MissingParameter) and error.param is not None:
        name = _name(error.param)
        return f"option {name} is missing" if name.startswith("-") else f"{_arguments(error)}, and {name} is missing"
    if isinstance(error, click.BadParameter) and error.param is not None:
        return _bad_value(error.param, error.message)
    if isinstance(error, click.NoSuchOption):
        close = [name for name in error.possibilities or [] if name != "--help"]
        hint = f"did you mean {' or '.join(sorted(close))}?" if close else "--help lists them"
        return f"unknown option {error.option_name} ({hint})"
    if match := re.match(r"Option '(.*?)' (requires an argument|does not take a value)", said):
        return f"option {match[1]} {'needs a value' if match[2].startswith('requires') else 'takes no value'}"
    if match := re.match(r"Got unexpected extra arguments? \((.*)\)", said):
        return f"{_arguments(error)}, and {match[1]} is too much"
    if (
        (match := re.match(r"No such command '(.*?)'", said))
        and error.ctx
        and isinstance(error.ctx.command, click.Group)
    ):
        names = error.ctx.command.list_commands(error.ctx)
        shown = [name for name in names if not getattr(error.ctx.command.get_command(error.ctx, name), "hidden", False)]
        return f"there is no command {match[1]}; there are {', '.join(shown)}"
    return said


def _name(param: click.Parameter) -> str:
    return param.human_readable_name if isinstance(param, click.Argument) else max(param.opts, key=len)


def _arguments(error: click.UsageError) -> str:
    pieces = error.ctx.command.collect_usage_pieces(error.ctx)[1:] if error.ctx else []  # the first is [OPTIONS]
    return f"takes the arguments {' '.join(pieces)}" if pieces else "takes no arguments"


def _bad_value(param: click.Parameter, said: str) -> str:
    value = re.match(r"(?:'(.*)'|(\S+)) is not", said, re.DOTALL)
    kind = _kind(param.type)
    if value is None or kind is None:
        return f"{_name(param)}: {said.rstrip('.')}"
    told = value[value.lastindex or 0]
    return f"{'option ' * isinstance(param, click.Option)}{_name(param)} takes {kind}, not '{told}'"


def _kind(type_: click.ParamType) -> str | None:
    if isinstance(type_, click.Choice):
        return " or ".join(type_.choices)
    if isinstance(type_, click.types.BoolParamType):
        return "true or false"
    if isinstance(type_, click.types.IntParamType | click.types.FloatParamType):
        noun = "a whole number" if isinstance(type_, click.types.IntParamType) else "a number"
        return noun + " and".join(_limits(type_))
    return None


def _limits(type_: click.ParamType) -> Iterator[str]:
    for end, beyond, at in (("min", "above", "least"), ("max", "below", "most")):
        limit = getattr(type_, end, None)
        if limit is not None:
            yield f" {beyond} {limit}" if getattr(type_, f"{end}_open") else f" of at {at} {limit}"
