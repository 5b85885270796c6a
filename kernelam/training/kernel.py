"""The plan of a kernel model: which random features, how many, and what is chosen among them."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from kernelam.errors import KernelamError
from kernelam.kernels.base import BLOCK, ColumnFeatures
from kernelam.kernels.expression import CompositionOf, Expression, Leaf, parse
from kernelam.memory import available, check_memory
from kernelam.models.description import describe
from kernelam.models.posterior import GradientModel
from kernelam.models.softmax import CHUNK_ELEMENTS, KernelSoftmax, check_bottleneck
from kernelam.ranks import beside, current, number, world
from kernelam.training.acoustic import Setup
from kernelam.training.exact import check_bandwidths
from kernelam.training.features import (
    CHUNK,
    build_features,
    check_drawable,
    count_of,
    features_of,
    models_of,
)
from kernelam.training.precondition import ELEMENTS, FRAMES, SPARE, leading_directions
from kernelam.training.search import Variants
from kernelam.training.selection import schedule, select_features
from kernelam.training.trainer import TrainingOptions


@dataclass(frozen=True)
class KernelPlan:
    kind: ClassVar[str] = KernelSoftmax.kind
    kernel: str  # an expression of kernelam.kernels.expression
    bandwidths: tuple[float, ...]  # factors on the median, to choose from
    num_features: int
    bottleneck: int = 0
    sampling: str = "paired"  # independent, orthogonal
    selection: str = ""  # rounds of feature selection, or how many to keep in each
    selection_frames: int = 1_000_000  # R, that each round passes over
    features_of: str = ""  # a model whose features are taken: then all above but the bottleneck does not count
    precondition: int = 0  # directions of the features whose gradients are damped
    block: int = 1  # which part of the features: each of `blocks` parts is a model of its own
    blocks: int = 1

    def __post_init__(self) -> None:
        check_bandwidths(self.bandwidths)
        if not 1 <= self.block <= self.blocks:
            raise KernelamError(f"there is no block {self.block} of {self.blocks}")
        if self.blocks > 1 and self.num_features % (2 * self.blocks):
            raise KernelamError(f"{self.num_features} features do not divide into {self.blocks} blocks of even size")
        if self.blocks > 1 and self.bottleneck:
            raise KernelamError("blocks are averaged into one matrix: they cannot have a bottleneck")
        parts = "--selection" if self.selection else "--blocks" if self.blocks > 1 else ""
        if parts and self.features_of:
            raise KernelamError(
                f"--features-of takes all features of a model as they are, which leaves none to {parts}"
            )
        if self.features_of:
            object.__setattr__(self, "bandwidths", (1.0,))  # there is nothing to choose
            return
        count = self.num_features // self.blocks
        few = check_drawable(parse(self.kernel), count, count, self.sampling)
        if parts and not isinstance(few, ColumnFeatures):
            raise KernelamError(f"{parts} is for a single kernel or a product with random features, not for sums")
        if self.selection:
            assert isinstance(few, ColumnFeatures)
            schedule(self.selection, count // few.features_per_column)

    def check(self, options: TrainingOptions, num_classes: int) -> None:
        if self.precondition and options.optimiser == "sag":
            raise KernelamError("--precondition damps the gradients of sgd, not of sag")
        if self.bottleneck and options.optimiser == "sag":
            raise KernelamError("--optimiser sag is for the convex problem, without a --bottleneck")
        if options.optimiser == "sag" and world() > 1:
            raise KernelamError("--optimiser sag, with its table of all frames, is for one process")
        check_bottleneck(self.bottleneck, num_classes)
        self.settings()  # the models that it names are there

    @property
    def variants(self) -> Variants:
        return Variants("bandwidth", self.bandwidths)

    def settings(self) -> dict[str, Any]:
        own = asdict(self)
        if self.features_of:
            origin = describe(self.features_of)
            selection = origin.get("training", {}).get("settings", {}).get("selection", "")
            kept = {name: own[name] for name in ("features_of", "bottleneck", "precondition")}
            return {**kept, "selection": selection, "models": [origin.get("fingerprint")]}
        return {**own, "models": models_of(self.kernel)}

    def _first_block(self, number: int) -> int:
        """Where the random numbers of draw `number` begin: no two draws of any of the parts overlap."""
        return (self.blocks * number + self.block - 1) * -(-self.num_features // self.blocks // BLOCK)

    def _check_memory(self, setup: Setup, D: int, projections: int) -> None:
        """Projections, the matrices, a batch of z or the sample that directions are found on, and these, found among
        those of all features; and the pairs of inputs for a median."""
        C, options, ranks = len(setup.counts), setup.options, current()
        own, projections = (-(-size // ranks.features.count) for size in (D, projections))
        inputs = 5 * CHUNK * setup.inputs.dim
        directions = self.precondition and self.precondition * own + 3 * (self.precondition + SPARE) * D
        sample = 2 * min(ELEMENTS, FRAMES * own) if self.precondition else 0
        z = max(options.batch * own, CHUNK_ELEMENTS, sample)
        needed = 4 * (projections + self._matrices(setup, own, D) + directions + inputs + z)
        more = "" if self.blocks > 1 or self.bottleneck else ", a --bottleneck, more --blocks"
        ways = f"fewer --num-features{more} or a smaller --splice"
        what = f"training {D} features of {C} classes" + (f" in each of {world()} processes" if world() > 1 else "")
        check_memory(needed, available(setup.device), what, f"{ways} take less")
        ranks.wait()  # that none finds less than its share because another one has taken its own

    def _matrices(self, setup: Setup, own: int, D: int) -> int:
        """Numbers in the matrices of `own` of D features with their copy at the start of an epoch, with SAG's memory or
        the average's, and with their gradient where it is not added at once; or, on the machine of the first of several
        processes, its share of the whole model, which is there twice when it is written."""
        C, r, options, ranks = len(setup.counts), self.bottleneck, setup.options, current()
        copies = (4 if options.optimiser == "sag" else 2) + (options.schedule == "average")
        copies += options.precision == "mixed" or ranks.frames.count > 1
        matrices, whole = (size * r + r * C if r else size * C for size in (own, D))
        near = ranks.features.count > 1 and number() < beside() and setup.device.type == "cpu"
        return max(copies * matrices, matrices + 2 * whole // beside() if near else 0)

    def _projections(self, node: Expression, dim: int, count: int) -> int:
        """Numbers in the frequencies of a map, in those of the maps inside it, and in the moments, of double precision,
        that projections between them are fitted to."""
        if isinstance(node, CompositionOf):
            own = self.num_features // self.blocks
            size = count_of(node.inner, dim, node.features or own, own)
            within = self._projections(node.inner, dim, size) + (12 * size**2 if node.projection else 0)
            return within + self._projections(node.outer, node.projection.dim if node.projection else size, count)
        if isinstance(node, Leaf) and node.name in ("sparse-gaussian", "linear", "posteriors"):
            return 0
        return dim * count // (1 if self.sampling == "independent" else 2)

    def build(self, setup: Setup, variant: float) -> GradientModel:
        options, count = setup.options, self.num_features // self.blocks
        if self.features_of:
            if Path(self.features_of).resolve() == setup.folder.resolve():
                raise KernelamError(
                    f"--features-of is the directory to train into, {setup.folder}: train into another one"
                )
            kernel, features = features_of(Path(self.features_of), setup.inputs, setup.device)
            self._check_memory(setup, features.total, 0)
        else:
            node, dim = parse(self.kernel), setup.inputs.dim
            self._check_memory(setup, count_of(node, dim, count, count), self._projections(node, dim, count))
            kernel, features = build_features(
                *(self.kernel, variant, count, self.sampling, setup.train, setup.inputs, options.seed, setup.device),
                first_block=self._first_block(0),
            )
        model = KernelSoftmax(
            *(kernel, features, self.bottleneck, setup.pipeline, setup.inputs, setup.counts, setup.device)
        )
        self._damp(setup, model)
        return model

    def _damp(self, setup: Setup, model: KernelSoftmax) -> None:
        """The damping that the features of the model want, where it is asked for."""
        if self.precondition:
            model.damping = leading_directions(model, setup.train, self.precondition, setup.options.seed)

    def prepare(self, setup: Setup) -> list[dict[str, Any]]:
        return []

    def refine(self, setup: Setup, model: GradientModel, rate: float) -> GradientModel:
        """Feature selection, where it is asked for."""
        if not self.selection:
            return model
        assert isinstance(model, KernelSoftmax)
        features, options = model.feature_map, setup.options
        assert isinstance(features, ColumnFeatures)
        sizes = schedule(self.selection, features.whole[1] if features.whole else features.columns)

        def draw(columns: int, number: int) -> ColumnFeatures:
            count = features.features_per_column * columns
            where = (options.seed, self.sampling, self._first_block(number))
            new = model.kernel.feature_map(setup.inputs.dim, count, *where)
            assert isinstance(new, ColumnFeatures)
            return new

        def use(chosen: ColumnFeatures) -> None:
            shard = current().features
            model.feature_map = (chosen.slice(shard) if shard.count > 1 else chosen).to(setup.device)
            self._damp(setup, model)

        task = (sizes, self.selection_frames, rate, setup.train, options, setup.folder, setup.fingerprint, setup.clock)
        use(select_features(model, draw, use, *task))
        model.initialise(options.seed)
        return model
