"""Train Gaussian mixture HMMs."""

from pathlib import Path

import click

from kernelam.cli.values import ABOVE_ZERO, COUNT, PATH, POSITIVE


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
    language.check_states(topology)
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
@click.option("--feat-type", type=click.Choice(["deltas", "lda", "fmllr"]), help="Otherwise as FOLDER's files show.")
@click.argument("data", type=PATH)
@click.argument("folder", type=PATH)
@click.argument("frames", type=PATH)
def pack(feat_type: str | None, data: Path, folder: Path, frames: Path) -> None:
    """Pack the features of DATA, made as the files of FOLDER (cmvn_opts, final.mat, trans.*, …) say, into FRAMES."""
    from kernelam.frames.store import FrameStore
    from kernelam.frontend.pipeline import Pipeline

    pipeline = Pipeline.of_directory(folder, feat_type or "")
    features = pipeline.open(data, folder if pipeline.fmllr else None)
    FrameStore.build(frames, ((utt, features[utt]) for utt in features))


@command.command()
@click.option("--num-leaves", type=POSITIVE, default=2000, help="At most so many pdfs.")
@click.option(
    "--context-width", type=POSITIVE, default=3, help="Phones of a window: 3 for triphones, 5 for quinphones."
)
@click.option("--central-position", type=COUNT, default=1, help="Where the phone itself stands in it, from 0.")
@click.option("--min-gain", default=300.0, help="The least log-likelihood that a question gains.")
@click.option("--seed", default=1)
@click.argument("lang", type=PATH)
@click.argument("ali", type=PATH)
@click.argument("folder", type=PATH)
def grow(
    num_leaves: int,
    context_width: int,
    central_position: int,
    min_gain: float,
    seed: int,
    lang: Path,
    ali: Path,
    folder: Path,
) -> None:
    """Grow FOLDER/tree on FOLDER/frames by the alignments in ALI, and make FOLDER/0.mdl, a Gaussian a leaf."""
    from kernelam.training.triphones import grow_model

    grow_model(lang, ali, folder, num_leaves, (context_width, central_position), min_gain, seed)


@command.command()
@click.option("--totals", default="0", help="Gaussians to split to after each step of EM, as many as there are steps.")
@click.option("--part", default="1/1", metavar="JOB/JOBS", help="Train the pdfs that are this job's alone.")
@click.option("--seed", default=1)
@click.option("--means-only", type=bool, default=False, help="Variances stay as they are.")
@click.argument("model", type=PATH)
@click.argument("frames", type=PATH)
@click.argument("ali", type=PATH)
@click.argument("out", type=PATH)
def update(
    totals: str, part: str, seed: int, means_only: bool, model: Path, frames: Path, ali: Path, out: Path
) -> None:
    """Re-estimate MODEL on the packed FRAMES by the alignments in ALI and write OUT; `merge` joins the parts."""
    from kernelam.training.gmm_jobs import update_part

    job, _, jobs = part.partition("/")
    sizes = [int(total) for total in totals.split()]
    update_part(model, frames, ali, out, sizes, (int(job), int(jobs)), seed, means_only)


@command.command()
@click.argument("ali", type=PATH)
@click.argument("parts", type=PATH, nargs=-1, required=True)
@click.argument("out", type=PATH)
def merge(ali: Path, parts: tuple[Path, ...], out: Path) -> None:
    """Write OUT of the PARTS that `update` made by the alignments in ALI, in the order of their jobs."""
    from kernelam.training.gmm_jobs import merge_parts

    merge_parts(ali, parts, out)


@command.command()
@click.option("--dim", type=POSITIVE, default=40)
@click.argument("data", type=PATH)
@click.argument("lang", type=PATH)
@click.argument("ali", type=PATH)
@click.argument("folder", type=PATH)
def lda(dim: int, data: Path, lang: Path, ali: Path, folder: Path) -> None:
    """FOLDER/final.mat: LDA of the features of DATA, spliced as FOLDER/splice_opts says, by the states in ALI."""
    from kernelam.training.triphones import write_lda

    write_lda(data, lang, ali, folder, dim)


@command.command()
@click.argument("model", type=PATH)
@click.argument("lang", type=PATH)
@click.argument("folder", type=PATH)
def mllt(model: Path, lang: Path, folder: Path) -> None:
    """Turn FOLDER/final.mat, FOLDER/frames and the means of MODEL by the transform that suits MODEL best."""
    from kernelam.training.triphones import apply_mllt

    apply_mllt(model, lang, folder)


@command.command()
@click.option("--judge", type=PATH, help="The model whose posteriors count, if it is another one (final.alimdl).")
@click.option("--frames", type=PATH, help="Packed features instead of those of DATA.")
@click.option("--features", type=PATH, help="The model whose features they are, if not MODEL's (final.alimdl).")
@click.option("--acwt", type=ABOVE_ZERO, default=0.083333, help="Acoustic scale of lattices.")
@click.option("--silence-weight", default=0.0, help="Of frames that are silence.")
@click.option(
    "--transform-dir", type=PATH, help="The transforms that the features have, on top of which new ones come."
)
@click.argument("model", type=PATH)
@click.argument("data", type=PATH)
@click.argument("lang", type=PATH)
@click.argument("ali", type=PATH)
@click.argument("out", type=PATH)
def fmllr(
    judge: Path | None,
    frames: Path | None,
    features: Path | None,
    acwt: float,
    silence_weight: float,
    transform_dir: Path | None,
    model: Path,
    data: Path,
    lang: Path,
    ali: Path,
    out: Path,
) -> None:
    """The fMLLR transform of each speaker of DATA with respect to MODEL, by the alignments or lattices in ALI."""
    from kernelam.decoding.speakers import Aligned, Taken, write_transforms

    taken = Taken(features or model, frames, transform_dir)
    write_transforms(model, judge, taken, data, lang, Aligned(ali, acwt), silence_weight, out)


@command.command()
@click.argument("data", type=PATH)
@click.argument("plain", type=PATH)
@click.argument("folder", type=PATH)
def adapt(data: Path, plain: Path, folder: Path) -> None:
    """FOLDER/frames: the packed frames PLAIN by the transforms FOLDER/trans.* of the speakers of DATA."""
    from kernelam.decoding.speakers import adapt_frames

    adapt_frames(data, plain, folder)


@command.command()
@click.argument("model", type=PATH)
@click.argument("plain", type=PATH)
@click.argument("folder", type=PATH)
@click.argument("out", type=PATH)
def alimdl(model: Path, plain: Path, folder: Path, out: Path) -> None:
    """OUT: MODEL for the packed frames PLAIN, which have no transforms; posteriors are those of FOLDER/frames."""
    from kernelam.decoding.speakers import write_alignment_model

    write_alignment_model(model, plain, folder, out)


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
    for name in ("frames", "frames_plain"):
        shutil.rmtree(folder / name, ignore_errors=True)
