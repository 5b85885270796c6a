"""How the best kernel model and the best network place the classes (lu2014, figures 1 to 3)."""

from dataclasses import replace

import numpy as np

from kernelam.report.embedding import principal_components, tsne
from kernelam.report.evidence import ClassMeans, read_class_means
from kernelam.report.figures import Axis, Plot, figure, figures
from kernelam.report.layouts import best_of
from kernelam.report.results import Results
from kernelam.report.sections import section, title_of

MOST, FEWEST = 500, 10  # classes
NOTE = (
    "Each point is a class, in the hue of its phone: the mean of its logits over heldout frames, in the two leading"
    " principal components, and by t-SNE. Of each phone one class is named."
)


def classes(results: Results) -> str:
    found = _found(results)
    flat = [principal_components(told.means) for _, told in found]
    alike = len(found) == 2 and _names(found[0][1]) == _names(found[1][1])
    placed: list[np.ndarray] = []
    for (_, told), start in zip(found, flat, strict=True):
        placed.append(tsne(told.means, placed[0] if alike and placed else start))
    drawn = [
        _figure(f"{title}, {way}", told, places)
        for way, of_all in (("principal components", flat), ("t-SNE", placed))
        for (title, told), places in zip(found, of_all, strict=True)
    ]
    begun = " The t-SNE of the kernel model starts from that of the network." if alike else ""
    return section("Places of the classes", NOTE + begun, figures(drawn))


def _found(results: Results) -> list[tuple[str, ClassMeans]]:
    """Of the best network and the best kernel model, where they have enough classes, with the title of the run."""
    found = []
    for kind in ("dnn", "kernel"):
        best = best_of(results.experiments, kind, results.sets)
        told = read_class_means(best[0].folder) if best else None
        if told and len(told.classes) >= FEWEST:
            found.append((title_of(results.experiments.index(best), best[0]), _most_frequent(told)))
    return found


def _names(told: ClassMeans) -> list[tuple[int, str]]:
    return list(zip(told.classes, told.phones, strict=True))


def _most_frequent(told: ClassMeans) -> ClassMeans:
    """At most MOST classes, in order."""
    kept = sorted(np.argsort(-told.frames, kind="stable")[:MOST].tolist())
    return replace(
        told,
        classes=[told.classes[place] for place in kept],
        phones=[told.phones[place] for place in kept],
        frames=told.frames[kept],
        means=told.means[kept],
    )


def _figure(caption: str, told: ClassMeans, places: np.ndarray) -> str:
    plot = Plot(Axis.around("", places[:, 0].tolist()), Axis.around("", places[:, 1].tolist()))
    phones = sorted(set(told.phones))
    named = {phone: _middle(told, places, phone) for phone in phones}
    for place, (number, phone) in enumerate(_names(told)):
        hue = phones.index(phone) / len(phones)
        x, y = places[place].tolist()
        plot.point(x, y, hue, f"class {number}, {phone}", phone if named[phone] == place else "")
    return figure(plot, caption)


def _middle(told: ClassMeans, places: np.ndarray, phone: str) -> int:
    """The class of the phone that is nearest to the median of its classes."""
    own = np.flatnonzero(np.array(told.phones) == phone)
    centre = np.median(places[own], axis=0)
    return int(own[np.square(places[own] - centre).sum(axis=1).argmin()])
