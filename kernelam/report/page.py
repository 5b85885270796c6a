"""The results of a set of experiments as one HTML file that needs nothing else: no script, no network."""

from html import escape
from pathlib import Path

from kernelam.files import write_texts
from kernelam.report.charts import cost, features, learning
from kernelam.report.classes import classes
from kernelam.report.correlations import correlations
from kernelam.report.figures import COLOURS
from kernelam.report.mistakes import alignments, phones, speakers, words
from kernelam.report.results import Results, tables_and_figures
from kernelam.report.sections import conditions, errors, failed, methods, papers, training
from kernelam.report.selections import inputs, survival

SECTIONS = [
    conditions,
    errors,
    training,
    papers,
    methods,
    cost,
    learning,
    correlations,
    features,
    survival,
    inputs,
    classes,
    speakers,
    words,
    phones,
    alignments,
    failed,
]

_LIGHT = (
    "--paper:#fff;--ink:#1b1f24;--quiet:#57606a;--rule:#d5dae0;--band:#f4f6f8;--wrong:#b42318;--added:#0a5cad;"
    "--s0:#0a66c2;--s1:#c2410c;--s2:#15803d;--s3:#9333ea;--s4:#b91c5c;--s5:#0f766e;--s6:#854d0e;--s7:#475569"
)
_DARK = (
    "--paper:#14171b;--ink:#e4e8ed;--quiet:#9aa5b1;--rule:#343b44;--band:#1d2228;--wrong:#ff8f85;--added:#7cb8ff;"
    "--s0:#62a8ff;--s1:#ff9a5c;--s2:#5fce85;--s3:#c79bff;--s4:#ff86b3;--s5:#4fd1c5;--s6:#e0b35a;--s7:#a9b6c6"
)
_STYLE = f"""
:root {{ color-scheme: light dark; {_LIGHT} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; padding: 1rem; max-width: 1400px; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }}
h2 {{ font-size: 1.25rem; margin: 2.2rem 0 .3rem; }}
h3 {{ font-size: 1rem; margin: 1rem 0 .3rem; }}
p {{ margin: .3rem 0 .8rem; max-width: 75ch; }}
small, figcaption, .conditions, .legend {{ color: var(--quiet); font-size: .875rem; }}
ul {{ padding-left: 1.2rem; margin: .3rem 0; }}
.scroll {{ overflow-x: auto; background: /* a shadow where there is more to the side */
  linear-gradient(to right, var(--paper) 40%, transparent) left / 3rem 100% no-repeat local,
  linear-gradient(to left, var(--paper) 40%, transparent) right / 3rem 100% no-repeat local,
  linear-gradient(to right, var(--rule), transparent) left / 1rem 100% no-repeat scroll,
  linear-gradient(to left, var(--rule), transparent) right / 1rem 100% no-repeat scroll; }}
table {{ border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }}
th, td {{ padding: .35rem .6rem; text-align: right; vertical-align: top; border-bottom: 1px solid var(--rule); }}
th {{ font-weight: 600; vertical-align: bottom; min-width: 4.5em; }}
td {{ white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; padding-left: 0; }}
td:first-child {{ white-space: normal; min-width: 11rem; }}
td:last-child {{ white-space: normal; }}
td:nth-child(n + 10):last-child {{ min-width: 9rem; overflow-wrap: anywhere; }}
tbody tr:nth-child(even) {{ background: rgb(128 128 128 / .08); }}
.beside {{ display: flex; flex-wrap: wrap; gap: 1rem 3rem; align-items: flex-start; }}
.beside > * {{ max-width: 100%; }}
.beside th {{ min-width: 0; }}
.beside td {{ min-width: 0; white-space: nowrap; }}
.beside td:first-child {{ white-space: normal; }}
.figures {{ display: grid; gap: 1rem 2rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr)); }}
figure {{ margin: 0; break-inside: avoid; max-width: 480px; }}
svg {{ display: block; width: 100%; height: auto; overflow: visible; }}
svg text {{ font: 12px system-ui, sans-serif; fill: var(--ink); }}
polyline, .cross {{ fill: none; stroke: currentColor; stroke-width: 2; }}
.dot, .point, .triangle, rect {{ fill: currentColor; }}
.axis, .rule {{ fill: none; stroke: var(--quiet); }}
.rule {{ stroke: var(--rule); }}
{"".join(f".c{n} {{ color: var(--s{n}); }} " for n in range(COLOURS))}
.legend {{ display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; margin: .3rem 0; }}
.legend li {{ display: flex; align-items: center; gap: .4rem; }}
.key {{ width: 28px; flex: none; }}
del {{ color: var(--wrong); text-decoration: line-through; }}
ins {{ color: var(--added); text-decoration: underline; }}
del, ins {{ font-weight: 600; }}
span:has(del) {{ background: var(--band); border-radius: 3px; padding: 0 .2em; }}
.utterance {{ break-inside: avoid; }}
summary {{ cursor: pointer; }}
pre {{ overflow-x: auto; background: var(--band); padding: .6rem; font-size: .8125rem; }}
@page {{ size: landscape; margin: 15mm; }}
@media print {{
  body {{ padding: 0; max-width: none; font-size: 10pt; }}
  .scroll {{ overflow: visible; background: none; }}
  table {{ font-size: 7.5pt; }}
  th, td {{ padding: .15rem .3rem; white-space: normal; }}
  th {{ min-width: 0; }}
  td:first-child {{ min-width: 8em; }}
  td:last-child {{ overflow-wrap: anywhere; }}
  .conditions::details-content {{ content-visibility: visible; height: auto; }}
  tr {{ break-inside: avoid; }}
  h2 {{ break-after: avoid; }}
  .figures {{ grid-template-columns: 1fr 1fr 1fr; }}
}}
"""


def write_report(output: Path, page: Path, results: Results) -> None:
    """The tables, their figures and the page; nothing where one of them cannot be made."""
    write_texts({**tables_and_figures(output, results), page: _page(results)})


def write_page(path: Path, results: Results) -> None:
    write_texts({path: _page(results)})


def _page(results: Results) -> str:
    body = "".join(section(results) for section in SECTIONS)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(results.title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(results.title)}</h1>{body}</body></html>\n"
    )
