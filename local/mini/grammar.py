"""Weighted context-free grammars: the format is described at the head of grammar.txt."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelam.errors import KernelamError
from kernelam.kaldi.tables import lines

_SYMBOL = re.compile(r"<[a-z]+>|[a-z']+|,")


@dataclass(frozen=True)
class Rule:
    """The alternatives of one name, each a list of symbols, and their cumulative probabilities."""

    alternatives: list[list[str]]
    cumulative: np.ndarray


@dataclass(frozen=True)
class Grammar:
    start: str
    rules: dict[str, Rule]

    def sample(self, rng: np.random.Generator) -> list[str]:
        """One sentence, commas included, by leftmost derivation."""
        words: list[str] = []
        pending = [self.start]
        while pending:
            symbol = pending.pop()
            if symbol not in self.rules:
                words.append(symbol)
                continue
            rule = self.rules[symbol]
            choice = np.searchsorted(rule.cumulative, rng.random(), side="right")
            pending.extend(reversed(rule.alternatives[choice]))
        return words

    def vocabulary(self) -> list[str]:
        """All words, sorted."""
        symbols = {s for rule in self.rules.values() for alternative in rule.alternatives for s in alternative}
        return sorted(symbols - set(self.rules) - {","})


def read_grammar(path: str | Path) -> Grammar:
    """Parse the grammar at `path`; a bad line is an error that names it."""
    weighted: dict[str, list[tuple[float, list[str]]]] = {}
    used: dict[str, int] = {}
    for number, line in enumerate(lines(path), 1):
        where = f"{path}, line {number}"
        content = line.partition("#")[0].rstrip()
        if not content:
            continue
        if not content[0].isspace():
            if not re.fullmatch(r"<[a-z]+>", content):
                raise KernelamError(f"{where}: '{content}' should be a rule's name in angle brackets")
            if content in weighted:
                raise KernelamError(f"{where}: the rule {content} is defined twice")
            weighted[content] = []
            continue
        if not weighted:
            raise KernelamError(f"{where}: an alternative stands before the first rule")
        for weight, symbols in _alternatives(content, where):
            weighted[list(weighted)[-1]].append((weight, symbols))
            used.update({s: number for s in symbols if s.startswith("<")})
    return _checked(path, weighted, used)


def _alternatives(content: str, where: str) -> list[tuple[float, list[str]]]:
    weight, _, rest = content.strip().partition(" ")
    if not re.fullmatch(r"\d+(\.\d+)?", weight) or float(weight) == 0:
        raise KernelamError(f"{where}: '{weight}' should be a positive weight")
    alternatives = []
    for text in rest.split("|"):
        symbols = [] if text.strip() == "-" else text.split()
        if not symbols and text.strip() != "-":
            raise KernelamError(f"{where}: an alternative is empty; write '-' if that is meant")
        for symbol in symbols:
            if not _SYMBOL.fullmatch(symbol):
                raise KernelamError(f"{where}: '{symbol}' is neither a lower-case word, a comma nor a <name>")
        alternatives.append((float(weight), symbols))
    return alternatives


def _checked(path: str | Path, weighted: dict[str, list[tuple[float, list[str]]]], used: dict[str, int]) -> Grammar:
    if not weighted:
        raise KernelamError(f"{path} has no rule")
    for name, number in used.items():
        if name not in weighted:
            raise KernelamError(f"{path}, line {number}: no rule defines {name}")
    rules = {}
    for name, alternatives in weighted.items():
        if not alternatives:
            raise KernelamError(f"{path}: the rule {name} has no alternative")
        weights = np.array([weight for weight, _ in alternatives])
        cumulative = np.cumsum(weights) / weights.sum()
        cumulative[-1] = 1.0
        rules[name] = Rule([symbols for _, symbols in alternatives], cumulative)
    _check_ends(path, rules)
    return Grammar(next(iter(weighted)), rules)


def _check_ends(path: str | Path, rules: dict[str, Rule]) -> None:
    """A rule that can only be replaced by itself would be sampled for ever."""
    ends: set[str] = set()
    while True:
        more = {
            name
            for name, rule in rules.items()
            if name not in ends and any(all(s in ends or s not in rules for s in a) for a in rule.alternatives)
        }
        if not more:
            break
        ends |= more
    if endless := sorted(set(rules) - ends):
        raise KernelamError(f"{path}: the rule {endless[0]} never ends in words")
