"""The language of --kernel.

sum          = product { "+" product }                  features of each, concatenated
product      = [ weight "*" ] chain { "*" chain }       weights: all or none, then each is 1/L
chain        = map { "o" [ projection "o" ] map }       read outside in: gaussian o pca:100 o laplacian#5000
               [ "o" projection ]                       of the inputs themselves: gaussian o fda:100 [ o linear ]
map          = ( leaf | "(" sum ")" ) [ "#" features ]  the number only of an inner map
leaf         = gaussian | laplacian | sparse-gaussian[:k] | polynomial:degree, each with [ "@" multiple of the median ]
             | arccos0 | arccos1 | arccos2 | linear | posteriors:model directory
projection   = pca:n | fda:n
"""

import math
import re
from dataclasses import dataclass
from typing import NoReturn

from kernelam.errors import KernelamError

DEEPEST = 50  # where nothing that is nested is too much for Python's stack
BANDWIDTHS = ("gaussian", "laplacian", "sparse-gaussian", "polynomial")
LEAVES = (*BANDWIDTHS, "arccos0", "arccos1", "arccos2", "linear", "posteriors")
PROJECTIONS = ("pca", "fda")
SPARSE_K = 5  # may2017, section 6.2

_TOKEN = re.compile(r"posteriors:[^\s()]*|[A-Za-z][A-Za-z0-9-]*|\d+\.?\d*(?:e[+-]?\d+)?|[+*()#@:]")


class Expression:
    """A kernel as it was asked for; `str` gives an expression that is read as the same again."""


@dataclass(frozen=True)
class Leaf(Expression):
    name: str
    argument: int = 0  # k of the sparse Gaussian, degree of the polynomial
    factor: float | None = None  # of the median; none: the caller's
    folder: str = ""

    def __str__(self) -> str:
        argument = f":{self.folder or self.argument}" if self.folder or self.argument else ""
        return f"{self.name}{argument}" + ("" if self.factor is None else f"@{self.factor!r}")


@dataclass(frozen=True)
class SumOf(Expression):
    weights: tuple[float, ...]
    terms: tuple[Expression, ...]

    def __str__(self) -> str:
        terms = (f"{weight!r}*{_text(term, SumOf)}" for weight, term in zip(self.weights, self.terms, strict=True))
        return " + ".join(terms)


@dataclass(frozen=True)
class ProductOf(Expression):
    factors: tuple[Expression, ...]

    def __str__(self) -> str:
        return " * ".join(_text(factor, SumOf, ProductOf) for factor in self.factors)


@dataclass(frozen=True)
class Projection:
    name: str
    dim: int

    def __str__(self) -> str:
        return f"{self.name}:{self.dim}"


@dataclass(frozen=True)
class CompositionOf(Expression):
    outer: Expression
    projection: Projection | None
    inner: Expression
    features: int | None = None  # of the inner map; none: the caller's

    def __str__(self) -> str:
        inside = (SumOf, ProductOf, CompositionOf)
        projection = f"{self.projection} o " if self.projection else ""
        features = f"#{self.features}" if self.features else ""
        return f"{_text(self.outer, *inside)} o {projection}{_text(self.inner, *inside)}{features}"


def _text(part: Expression, *bracketed: type[Expression]) -> str:
    return f"({part})" if isinstance(part, bracketed) else str(part)


def parse(text: str) -> Expression:
    """The expression that `text` is; what is wrong with it is a sentence that shows the place."""
    parser = _Parser(text)
    found = parser.sum()
    if parser.token:
        parser.fail("+, * or o is missing")
    return found


@dataclass(frozen=True)
class _Token:
    text: str
    place: int


class _Parser:
    """Each method reads what the grammar calls by its name, from token `next` on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = []
        self.next = 0
        end = 0
        while rest := text[end:].lstrip():
            match = _TOKEN.match(rest)
            place = len(text) - len(rest)
            if not match:
                raise self._error("a sign without a meaning", place)
            self.tokens.append(_Token(match[0], place))
            end = place + match.end()
        nested = sum(token.text in ("o", "(") for token in self.tokens)
        if nested > DEEPEST:
            raise KernelamError(f"a kernel has at most {DEEPEST} compositions and brackets, not {nested}")

    @property
    def token(self) -> str:
        return self.tokens[self.next].text if self.next < len(self.tokens) else ""

    def _error(self, what: str, place: int) -> KernelamError:
        where = f"at {self.text[place:]!r}" if place < len(self.text) else "at the end"
        return KernelamError(f"the kernel {self.text!r} cannot be read: {what} {where}")

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        """Point to token `at`, or to the next one."""
        at = self.next if at is None else at
        raise self._error(what, self.tokens[at].place if at < len(self.tokens) else len(self.text))

    def accept(self, text: str) -> bool:
        found = self.token == text
        self.next += found
        return found

    def real(self, what: str) -> float:
        if not self.token[:1].isdigit() or not math.isfinite(value := float(self.token)):
            self.fail(f"{what}, a number, is missing")
        self.next += 1
        return value

    def whole(self, what: str) -> int:
        if not re.fullmatch(r"0*[1-9]\d{0,8}", self.token):
            self.fail(f"{what}, a whole number above zero, is missing")
        self.next += 1
        return int(self.tokens[self.next - 1].text)

    def sum(self) -> Expression:
        start = self.next
        terms = [self.product()]
        while self.accept("+"):
            terms.append(self.product())
        weights = [weight for weight, _ in terms if weight is not None]
        if weights and len(weights) < len(terms):
            self.fail("some terms of a sum have a weight and others have none", start)
        if weights and sum(weights) == 0.0:
            self.fail("all weights are zero", start)
        if len(terms) == 1 and not weights:
            return terms[0][1]
        equal = [1.0 / len(terms)] * len(terms)
        return SumOf(tuple(weights or equal), tuple(term for _, term in terms))

    def product(self) -> tuple[float | None, Expression]:
        weight = None
        if self.token[:1].isdigit():
            weight = self.real("a weight")
            if not self.accept("*"):
                self.fail("the * of a weight is missing")
        factors = [self.factor()]
        while self.accept("*"):
            factors.append(self.factor())
        return weight, factors[0] if len(factors) == 1 else ProductOf(tuple(factors))

    def factor(self) -> Expression:
        start = self.next
        found, features = self.chain()
        if features:
            self.fail(f"#{features} is not right of an o, where it would be the size of an inner map,", start)
        return found

    def chain(self) -> tuple[Expression, int | None]:
        outer, features = self.map()
        if not self.accept("o"):
            return outer, features
        projection = self.projection()
        if projection and not self.accept("o"):
            return CompositionOf(outer, projection, Leaf("linear")), features
        inner, inner_features = self.chain()
        return CompositionOf(outer, projection, inner, inner_features), features

    def projection(self) -> Projection | None:
        name = self.token
        if name not in PROJECTIONS:
            return None
        self.next += 1
        if not self.accept(":"):
            self.fail(f"{name} needs a dimension, as in {name}:50,")
        return Projection(name, self.whole("a dimension"))

    def map(self) -> tuple[Expression, int | None]:
        start = self.next
        if self.accept("("):
            found = self.sum()
            if not self.accept(")"):
                self.fail("a closing bracket is missing")
        else:
            found = self.leaf()
        if not self.accept("#"):
            return found, None
        features = self.whole("a number of features")
        if isinstance(found, Leaf) and found.name in ("posteriors", "linear"):
            self.fail(f"{found.name} has as many features as it has,", start)
        return found, features

    def leaf(self) -> Leaf:
        name, _, folder = self.token.partition(":") if self.token.startswith("posteriors:") else (self.token, "", "")
        if name in PROJECTIONS:
            self.fail("a projection comes after an o, as in gaussian o pca:10, unlike here")
        if name not in LEAVES:
            self.fail(f"a kernel ({', '.join(LEAVES)}) is missing")
        self.next += 1
        if name == "posteriors":
            if not folder:
                self.fail("posteriors need the directory of a model, as in posteriors:exp/kernel1,", self.next - 1)
            return Leaf(name, folder=folder)
        argument = SPARSE_K if name == "sparse-gaussian" else 0
        if name in ("sparse-gaussian", "polynomial") and self.accept(":"):
            argument = self.whole("a degree" if name == "polynomial" else "a number of coordinates")
        if name == "polynomial" and not argument:
            self.fail("a polynomial needs a degree, as in polynomial:2,")
        return Leaf(name, argument, self.bandwidth() if name in BANDWIDTHS and self.accept("@") else None)

    def bandwidth(self) -> float:
        start = self.next
        factor = self.real("a multiple of the median distance")
        if factor == 0.0:
            self.fail("the bandwidth is above zero, not", start)
        return factor
