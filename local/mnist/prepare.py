#!/usr/bin/env python
"""Images as Kaldi directories: an image is an utterance of one frame, a class a phone and a word of one state.

So every step of the toolkit that takes features and alignments takes images; a word error rate is an error rate.
"""

from collections.abc import Callable
from pathlib import Path

import click
import lookalikes
import numpy as np
from idx import read_cifar, read_mnist
from lookalikes import Set

from kernelam.cli.mistakes import run
from kernelam.errors import KernelamError
from kernelam.files import replacing
from kernelam.hmm.topology import Topology
from kernelam.hmm.transitions import TransitionModel
from kernelam.hmm.tree import ContextTree
from kernelam.kaldi.alignment import write_alignments
from kernelam.kaldi.ark import ArkWriter
from kernelam.progress import say

DIGITS = [str(digit) for digit in range(10)]


def mnist(corpus: Path) -> dict[str, Set]:
    """The first 50,000 training images, the other 10,000, and the test images (kubo2012, section 4.1)."""
    x, y = read_mnist(corpus, "train")
    cut = len(x) * 5 // 6
    if not cut:
        raise KernelamError(f"{corpus} has 1 training image, and some must train and others be heldout")
    return {"train": (x[:cut], y[:cut]), "heldout": (x[cut:], y[cut:]), "test": read_mnist(corpus, "t10k")}


def cifar(corpus: Path) -> dict[str, Set]:
    """Four batches and the fifth, and the test batch."""
    batches = [read_cifar(corpus / f"data_batch_{number}.bin") for number in range(1, 6)]
    train = tuple(np.concatenate(parts) for parts in zip(*batches[:4], strict=True))
    return {"train": (train[0], train[1]), "heldout": batches[4], "test": read_cifar(corpus / "test_batch.bin")}


def digits(corpus: Path) -> dict[str, Set]:
    """1797 images of 8 × 8 pixels that come with scikit-learn: 1100, 300 and 397 of them."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise KernelamError("the embedded digits come with scikit-learn: pip install scikit-learn") from None
    x, y = load_digits(return_X_y=True)
    x, y = (x / 16).astype(np.float32), y.astype(np.int64)
    return {"train": (x[:1100], y[:1100]), "heldout": (x[1100:1400], y[1100:1400]), "test": (x[1400:], y[1400:])}


SOURCES: dict[str, tuple[Callable[[Path], dict[str, Set]], list[str]]] = {
    "digits": (digits, DIGITS),
    "mnist": (mnist, DIGITS),
    "cifar": (cifar, DIGITS),
    "rectangles": (lambda _: lookalikes.rectangles(), ["wide", "tall"]),
    "convex": (lambda _: lookalikes.convex(), ["other", "convex"]),
    "back-rand": (lookalikes.back_rand, DIGITS),
    "back-image": (lookalikes.back_image, DIGITS),
}
"""How a set is made from the folder of a corpus, and what its classes are called."""


def write_sets(sets: dict[str, Set], names: list[str], data: Path, lang: Path, ali: Path) -> None:
    """DATA/<set> with features and words, LANG with the classes as phones and words, ALI_<set> with alignments."""
    phones = list(range(1, len(names) + 1))
    topology = Topology.left_to_right(phones, [], num_nonsil_states=1)
    tree = ContextTree.monophone([[phone] for phone in phones], dict.fromkeys(phones, 1))
    transitions = TransitionModel.from_tree(topology, tree)
    leaving = {int(pdf): number for number, pdf in enumerate(transitions.pdf) if transitions.is_final[number]}
    table = "".join(f"{name} {number}\n" for number, name in enumerate(["<eps>", *names]))
    lang.mkdir(parents=True, exist_ok=True)
    for name in ("phones.txt", "words.txt"):
        _write(lang / name, table)
    for name, (x, y) in sets.items():
        place, aligned = data / name, Path(f"{ali}_{name}")
        for folder in (place, aligned):
            folder.mkdir(parents=True, exist_ok=True)
        utts = [f"{name}-{number:06d}" for number in range(len(x))]
        with ArkWriter((place / "feats.ark").resolve(), place / "feats.scp") as writer:
            for utt, image in zip(utts, x, strict=True):
                writer.write(utt, image[None])
        _write(place / "text", "".join(f"{utt} {names[label]}\n" for utt, label in zip(utts, y, strict=True)))
        for table_name in ("utt2spk", "spk2utt"):
            _write(place / table_name, "".join(f"{utt} {utt}\n" for utt in utts))
        transitions.save(aligned / "final.mdl")
        tree.save(aligned / "tree")
        _write(aligned / "phones.txt", table)
        _write(aligned / "num_jobs", "1\n")
        paths = {utt: np.array([leaving[int(label)]], np.int32) for utt, label in zip(utts, y, strict=True)}
        write_alignments(aligned / "ali.1.gz", paths)
        say(f"{place}: {len(x)} images of {x.shape[1]} numbers")


def _write(path: Path, text: str) -> None:
    with replacing(path, "w") as stream:
        stream.write(text)


@click.command()
@click.option("--task", type=click.Choice(list(SOURCES)), default="digits")
@click.option("--corpus", type=click.Path(path_type=Path), default=Path(), help="The folder with the files of the set.")
@click.option("--binary", is_flag=True, help="Two classes: the first five against the others.")
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("ali", type=click.Path(path_type=Path))
def main(task: str, corpus: Path, binary: bool, data: Path, ali: Path) -> None:
    """Write DATA/{train,heldout,test}, DATA/lang and ALI_{train,heldout,test}."""
    make, names = SOURCES[task]
    if binary and names != DIGITS:
        raise KernelamError(f"--binary is for sets of ten classes; {task} has two")
    sets = make(corpus)
    if binary:
        sets, names = {name: (x, y // 5) for name, (x, y) in sets.items()}, ["low", "high"]
    write_sets(sets, names, data, data / "lang", ali)


if __name__ == "__main__":
    run(main)
