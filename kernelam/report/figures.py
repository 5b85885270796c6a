"""Small figures as SVG inside a page. Their colours are the page's, so that they follow it from light to dark."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = 8
_WIDTH, _HEIGHT = 360, 258
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 36, 42
_CLEAR = 12.0  # distance at which a label does not touch a mark
_SHAPES = {
    "dot": "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z",
    "point": "M-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0Z",
    "cross": "M-5-5L5 5M-5 5L5-5",
    "triangle": "M-5-16H5L0-8Z",  # above its point, which may have a cross too
}
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    name: str
    low: float
    high: float
    log: bool = False
    whole: bool = False  # ticks at whole numbers only

    @classmethod
    def around(cls, name: str, values: Iterable[float], log: bool = False, whole: bool = False) -> "Axis":
        """From the least to the greatest value, with a margin."""
        scaled = [math.log10(value) if log else float(value) for value in values]
        low, high = min(scaled), max(scaled)
        margin = 0.07 * (high - low) or 0.5
        low, high = (10**end if log else end for end in (low - margin, high + margin))
        return cls(name, low, high, log, whole)

    @property
    def title(self) -> str:
        return f"{self.name} (log scale)" if self.log else self.name

    def share(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""
        low, high, here = ((math.log10(v) if self.log else v) for v in (self.low, self.high, value))
        return (here - low) / (high - low)

    @property
    def ticks(self) -> list[float]:
        return self._log_ticks() if self.log and self.high / self.low >= 4 else self._even_ticks()

    def _even_ticks(self) -> list[float]:
        """At most six multiples of 1, 2 or 5 times a power of ten."""
        raw = (self.high - self.low) / 6
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
        step = max(step, 1.0) if self.whole else step
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [round(number * step, 12) for number in range(first, last + 1)]

    def _log_ticks(self) -> list[float]:
        """1, 2 and 5 times powers of ten within two decades, else powers of ten, at most seven."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        factors = (1, 2, 5) if last - first <= 2 else (1,)
        every = max(1, (last - first) // 6)
        found = [factor * 10.0**power for power in range(last, first - 1, -every) for factor in factors]
        return [tick for tick in found if self.low <= tick <= self.high]


def _number(value: float) -> str:
    if value and (abs(value) < 1e-3 or abs(value) >= 1e6):
        digits, power = f"{value:.0e}".split("e")
        raised = f"10{str(int(power)).translate(_SUPERSCRIPT)}"
        return raised if digits == "1" else f"{digits}·{raised}"
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.12g}").replace("-", "−")


def _dashes(dashed: bool) -> str:
    return ' stroke-dasharray="5 4"' if dashed else ""


class Plot:
    """Lines, marks and cells between two axes."""

    def __init__(self, x: Axis, y: Axis) -> None:
        self.x, self.y = x, y
        self._parts: list[str] = []
        self._marks: list[tuple[float, float]] = []
        self._labels: list[tuple[float, float, str]] = []

    def _place(self, x: float, y: float) -> tuple[float, float]:
        across = _LEFT + self.x.share(x) * (_WIDTH - _LEFT - _RIGHT)
        return across, _HEIGHT - _BOTTOM - self.y.share(y) * (_HEIGHT - _TOP - _BOTTOM)

    def line(self, points: Sequence[tuple[float, float]], colour: int, dashed: bool = False) -> None:
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self._place(*point) for point in points))
        self._parts.append(f'<polyline class="c{colour % COLOURS}" points="{places}"{_dashes(dashed)}/>')

    def mark(self, shape: str, x: float, y: float, colour: int, title: str, label: str = "") -> None:
        """`title` is shown where the pointer rests; `label` always, beside the mark."""
        self._mark(shape, x, y, f'class="c{colour % COLOURS}"', title, label)

    def _mark(self, shape: str, x: float, y: float, colour: str, title: str, label: str) -> None:
        across, up = self._place(x, y)
        self._marks.append((across, up))
        if label:
            self._labels.append((across, up, label))
        self._parts.append(
            f'<g {colour} transform="translate({across:.1f} {up:.1f})">'
            f'<title>{escape(title)}</title><path class="{shape}" d="{_SHAPES[shape]}"/></g>'
        )

    def point(self, x: float, y: float, hue: float, title: str, label: str = "") -> None:
        """A small mark whose hue, from 0 to 1, is one of more than the page has colours for."""
        self._mark("point", x, y, f'style="color:hsl({360 * hue:.0f} 65% 45%)"', title, label)

    def cell(self, x: float, y: float, depth: float, title: str) -> None:
        """A square of one unit around (x, y), of a depth of colour from 0 to 1."""
        (left, bottom), (right, top) = self._place(x - 0.5, y - 0.5), self._place(x + 0.5, y + 0.5)
        self._parts.append(
            f'<rect class="c0" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}"'
            f' fill-opacity="{depth:.2f}"><title>{escape(title)}</title></rect>'
        )

    def _texts(self) -> list[str]:
        """Each label at the first corner of its mark that is clear of other marks and labels, or as clear as can be."""
        labels: list[tuple[float, float]] = []
        texts = []
        for x, y, text in self._labels:
            others = [mark for mark in self._marks if mark != (x, y)] + labels
            corners = [(x + across, y + up) for up in (-9, 9) for across in (10, -10)]
            clear = [min([_CLEAR, *(math.dist(corner, one) for one in others)]) for corner in corners]
            best = corners[clear.index(max(clear))]
            labels.append(best)
            texts.append(f'<text x="{best[0]:.1f}" y="{best[1] + 4:.1f}" text-anchor="middle">{escape(text)}</text>')
        return texts

    def svg(self, name: str) -> str:
        bottom, middle = _HEIGHT - _BOTTOM, (_LEFT + _WIDTH - _RIGHT) / 2
        frame = [f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{_WIDTH - _RIGHT}"/>']
        for tick in self.x.ticks:
            across, _ = self._place(tick, self.y.low)
            frame.append(f'<text x="{across:.1f}" y="{bottom + 16}" text-anchor="middle">{_number(tick)}</text>')
        for tick in self.y.ticks:
            _, up = self._place(self.x.low, tick)
            frame.append(f'<path class="rule" d="M{_LEFT} {up:.1f}H{_WIDTH - _RIGHT}"/>')
            frame.append(f'<text x="{_LEFT - 5}" y="{up + 4:.1f}" text-anchor="end">{_number(tick)}</text>')
        frame.append(f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(self.x.title)}</text>')
        frame.append(f'<text x="2" y="14">{escape(self.y.title)}</text>')
        return (
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(name)}">'
            + "".join(frame + self._parts + self._texts())
            + "</svg>"
        )


def figure(plot: Plot, caption: str) -> str:
    return f"<figure>{plot.svg(caption)}<figcaption>{escape(caption)}</figcaption></figure>"


def figures(drawn: Sequence[str], keys: Iterable[tuple[str, int, str]] = ()) -> str:
    """Side by side under a legend of `keys`: shape, or "line" or "dashed", colour, text. Empty without figures."""
    return f'{_legend(keys)}<div class="figures">{"".join(drawn)}</div>' if drawn else ""


def _legend(keys: Iterable[tuple[str, int, str]]) -> str:
    items = []
    for shape, colour, text in keys:
        if shape in _SHAPES:
            drawn, middle = f'<path class="{shape}" d="{_SHAPES[shape]}"/>', -12 if shape == "triangle" else 0
        else:
            drawn, middle = f'<polyline points="-12,0 12,0"{_dashes(shape == "dashed")}/>', 0
        view = f'viewBox="-14 {middle - 8} 28 16" aria-hidden="true"'
        items.append(f'<li><svg class="key c{colour % COLOURS}" {view}>{drawn}</svg>{escape(text)}</li>')
    return f'<ul class="legend">{"".join(items)}</ul>' if items else ""
