"""The rules of a global mapping file (GLM) that NIST's csrfilt.sh applies to both sides before sclite compares them.

    CANCELLED => CANCELED
    GONNA     => [{GOING TO / GONNA}] / [ ] __ [ ]

The text, in capitals and with a space at either end, is read from left to right, and what a rule's left side says, in
its context if it has one, is replaced; of several rules the first. Alternatives without a context, of which NIST's own
en20030506.glm has one, would be cut at their last bar: such a rule is left out. Then hyphens within words divide them.
Sections may be for the reference or the hypothesis alone: ;; INPUT_DEPENDENT_APPLICATION = "hyp".
"""

import re
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import lines
from kernelam.progress import warn

_SECTION = re.compile(r';;\s+INPUT_DEPENDENT_APPLICATION\s*=\s*"([^"]*)"')
_OPTION = re.compile(r"""\*\s*(\w+)\s*=?\s*['"](.*)['"]\s*$""")
_ONLY = {"format": ("NIST1",), "copy_no_hit": ("T", "TRUE"), "case_sensitive": ("F", "FALSE")}
_KINDS = {"ref": "stm", "hyp": "ctm"}


class _Rule(NamedTuple):
    old: str
    new: str
    left: str
    right: str


class Rules:
    """Those of a file for one side, `ref` or `hyp`: calling them with a text gives the text that is scored."""

    def __init__(self, path: str | Path, side: str) -> None:
        self._rules: dict[str, list[_Rule]] = defaultdict(list)
        applies = True
        for number, line in enumerate(lines(path), 1):
            where = f"{path}, line {number}"
            if number == 1 and not line.startswith(";;"):
                raise KernelamError(f"{where}: the first line of a GLM file is a comment, which begins with ;;")
            if section := _SECTION.match(line):
                applies = any(re.search(section[1].lower(), name) for name in (side, _KINDS[side]))
            rule = line.partition(";;")[0].strip()
            if rule.startswith("*"):
                _check_option(rule, where)
            elif rule and applies and _is_cut(rule):
                warn(f"{where}: the rule '{rule}' is left out, for want of a context, / [ ] __ [ ], behind its /")
            elif rule and applies:
                made = _parsed(rule, where)
                self._rules[made.old[0]].append(made)
        self._mapped = lru_cache(maxsize=1 << 16)(self._map)

    def __call__(self, text: str) -> str:
        return self._mapped(text)

    def _map(self, text: str) -> str:
        spaced = re.sub(r"\s+", " ", f" {text.upper()} ").replace("(", "( ").replace(")", " )")
        made, place = [], 0
        while place < len(spaced):
            rule = next((rule for rule in self._rules.get(spaced[place], ()) if _fits(rule, spaced, place)), None)
            made.append(rule.new if rule else spaced[place])
            place += len(rule.old) if rule else 1
        text = re.sub(r"([^( ])-(?=[^) ])", r"\1 ", "".join(made))
        while (parted := re.sub(r"(\(\s+[^()\s]+\s+)([^()\s]+)", r"\1) ( \2", text)) != text:
            text = parted
        return re.sub(r"\s+\)", ")", re.sub(r"\(\s+", "(", text)).strip()


def _fits(rule: _Rule, text: str, place: int) -> bool:
    begin, end = place - len(rule.left), place + len(rule.old)
    parts = ((rule.left, begin), (rule.old, place), (rule.right, end))
    return begin >= 0 and all(text.startswith(part, at) for part, at in parts)


def _check_option(line: str, where: str) -> None:
    option = _OPTION.match(line)
    if option is None:
        raise KernelamError(f"{where}: expected * name 'value', found '{line}'")
    name, value = option[1].lower(), option[2].upper()
    if value not in _ONLY.get(name, (value,)):
        raise KernelamError(f"{where}: {name} '{option[2]}' is not supported; it is to be '{_ONLY[name][0]}'")


def _is_cut(line: str) -> bool:
    """Whether what stands behind the last bar is an alternative."""
    _, slash, context = line.rpartition("/")
    return bool(slash) and "_" not in context


def _parsed(line: str, where: str) -> _Rule:
    old, arrow, rest = line.partition("=>")
    new, slash, context = rest.rpartition("/")
    left = right = ""
    if not slash:
        new = rest
    else:
        left, _, right = context.partition("_")
        right = right.lstrip("_")
    old, new, left, right = (_bare(part).upper() for part in (old, new, left, right))
    if not arrow or not old:
        raise KernelamError(f"{where}: expected a rule such as CANCELLED => CANCELED, found '{line}'")
    return _Rule(old, new, left, right)


def _bare(part: str) -> str:
    part = part.strip()
    return part[1:-1] if len(part) > 1 and part[0] + part[-1] in ("[]", '""') else part
