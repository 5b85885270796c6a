"""Train Gaussian mixture HMMs."""

from pathlib import Path

import click

from kernelam.cli.values import COUNT, PATH


@click.group()
def command() -> None:
    """Train Gaussian mixture HMMs: the steps that steps/train_*.sh call in turn with `kernelam align`."""


@command.command()
@click.option("--cmvn-opts", default="--norm-means=true", help="CMVN per speaker.")
@click.option("--delta-order", type=COUNT, default=2)
@click.argument("data", type=PATH)
@click.argument("lang", type=PATH)
@click.argument("folder", type=PATH)
def init(cmvn_opts: str, delta_order: int, data: Path, lang: Path, folder: Path) -> None:
    """A flat start: FOLDER/tree and FOLDER/0.mdl with one Gaussian a state, and the frames of DATA packed."""
    import shutil

    from kernelam.frames.store import FrameStore
    from kernelam.frontend.pipeline import Pipeline
    from kernelam.hmm.lang import Lang
    from kernelam.hmm.transitions import TransitionModel
    from kernelam.hmm.tree import ContextTree
    from kernelam.models.gmm import GmmModel, write_feature_options
    from kernelam.training.gmm import single_gaussians

    language = Lang(lang)
    topology = language.topology
    tree = ContextTree.monophone(language.phone_sets(), {p: topology.num_pdf_classes(p) for p in topology.phones})
    pipeline = Pipeline.parse(cmvn_opts, delta_order)
    features = pipeline.open(data)
    store = FrameStore.build(folder / "frames", ((utt, features[utt]) for utt in features))
    write_feature_options(folder, pipeline)
    shutil.copyfile(lang / "phones.txt", folder / "phones.txt")
    tree.save(folder / "tree")
    transitions = TransitionModel.from_tree(topology, tree)
    GmmModel(pipeline, transitions, single_gaussians(store, transitions.num_pdfs)).write(folder / "0.mdl")


@command.command()
@click.option("--num-gauss", default=0, help="Split to this many Gaussians after re-estimation.")
@click.option("--passes", default=1, help="Steps of EM with these alignments.")
@click.option("--seed", default=1)
@click.argument("model", type=PATH)
@click.argument("frames", type=PATH)
@click.argument("ali", type=PATH)
@click.argument("out", type=PATH)
def update(num_gauss: int, passes: int, seed: int, model: Path, frames: Path, ali: Path, out: Path) -> None:
    """Re-estimate MODEL on the packed FRAMES by the alignments in ALI and write OUT."""
    from kernelam.frames.store import FrameStore
    from kernelam.kaldi.alignment import read_alignment_dir
    from kernelam.models.gmm import GmmModel
    from kernelam.training.gmm import viterbi_update

    trained = viterbi_update(GmmModel.read(model), FrameStore(frames), read_alignment_dir(ali), passes, num_gauss, seed)
    trained.write(out)


@command.command()
@click.option("--seconds", default=0, help="How long training took.")
@click.option("--seed", default=1)
@click.argument("model", type=PATH)
@click.argument("folder", type=PATH)
def finish(seconds: int, seed: int, model: Path, folder: Path) -> None:
    """Make MODEL the final model of FOLDER, and remove the packed frames."""
    import shutil

    from kernelam.frames.store import FrameStore
    from kernelam.models.description import write_description
    from kernelam.models.gmm import GmmModel

    trained = GmmModel.read(model)
    frames = len(FrameStore(folder / "frames"))
    model.replace(folder / "final.mdl")
    about = {
        "kind": "gmm",
        "config": {"gaussians": len(trained.gmms.weights), "dim": trained.gmms.dim},
        "num_classes": trained.num_classes,
        "num_parameters": trained.gmms.num_parameters,
        "input": {"pipeline": trained.pipeline.settings()},
        "training": {"frames": frames, "seconds": seconds},
        "seed": seed,
    }
    write_description(folder, about)
    shutil.rmtree(folder / "frames")
