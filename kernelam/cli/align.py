"""Align transcripts with frames by a trained model."""

from pathlib import Path

import click

from kernelam.cli.values import ABOVE_ZERO, PATH, Number, check_output


@click.command()
@click.option("--acoustic-scale", type=Number(), default=0.1, help="Scale of the model's log-likelihoods.")
@click.option("--transition-scale", type=Number(), default=1.0, help="Scale of the log-probabilities of transitions.")
@click.option("--self-loop-scale", type=Number(), default=0.1, help="Scale of those of self-loops.")
@click.option("--boost-silence", type=ABOVE_ZERO, default=1.0, help="Factor on the likelihoods of optional silence.")
@click.option("--frames", type=PATH, help="Packed features of the model's kind, instead of DATA/feats.scp.")
@click.option("--equal", type=bool, default=False, help="Share frames out equally instead: a flat start.")
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.option("--transform-dir", type=PATH, help="Directory with the speakers' fMLLR transforms, trans.*.")
@click.argument("model", type=PATH)
@click.argument("data", type=PATH)
@click.argument("lang", type=PATH)
@click.argument("out", type=PATH)
def command(
    acoustic_scale: float,
    transition_scale: float,
    self_loop_scale: float,
    boost_silence: float,
    frames: Path | None,
    equal: bool,
    device: str,
    transform_dir: Path | None,
    model: Path,
    data: Path,
    lang: Path,
    out: Path,
) -> None:
    """Align DATA/text by MODEL (a directory, or an .mdl file beside its tree) and write transition-ids to OUT."""
    from kernelam.decoding.align import Aligner, align_data, silence_bonus
    from kernelam.frames.store import FrameStore
    from kernelam.hmm.graph import TrainingGraphs
    from kernelam.hmm.lang import Lang, check_phones
    from kernelam.hmm.transitions import TransitionModel, check_tree
    from kernelam.hmm.tree import ContextTree
    from kernelam.kaldi.alignment import write_alignments
    from kernelam.models import load_model

    check_output(out)
    folder = model.parent if model.is_file() else model
    check_phones(lang / "phones.txt", folder / "phones.txt")
    transitions = TransitionModel.load(model if model.is_file() else model / "final.mdl")
    symbols, tree = Lang(lang), ContextTree.load(folder / "tree")
    check_tree(tree, transitions, f"{folder}: ")
    graphs = TrainingGraphs(symbols, tree, transitions, transition_scale, self_loop_scale)
    scorer = load_model(model, device, transform_dir)
    features = FrameStore(frames) if frames else scorer.open(data)
    aligner = Aligner(transitions, acoustic_scale, silence_bonus(symbols, transitions, boost_silence))
    write_alignments(out, align_data(data, graphs, scorer, features, None if equal else aligner))
