"""What a plan of a kernel model refuses before any work."""

from typing import Any

import pytest

from kernelam.errors import KernelamError
from kernelam.kernels.expression import parse
from kernelam.memory import check_memory
from kernelam.training.kernel import KernelPlan
from kernelam.training.trainer import TrainingOptions


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"bandwidths": (1.0, 0.0)}, "a bandwidth is a number above zero, not 0"),
        ({"block": 3, "blocks": 2}, "there is no block 3 of 2"),
        ({"num_features": 4, "blocks": 5}, "4 features do not divide into 5 blocks"),
        ({"features_of": "exp/k", "selection": "5"}, "which leaves none to --selection"),
        ({"kernel": "gaussian o fda:9", "selection": "5"}, "--selection is for a single kernel or a product"),
        ({"kernel": "gaussian + laplacian", "blocks": 2}, "--blocks is for a single kernel or a product"),
        ({"blocks": 2, "bottleneck": 8}, "they cannot have a bottleneck"),
        ({"kernel": "linear", "blocks": 2}, "--blocks is for a single kernel or a product with random features"),
        ({"kernel": "polynomial:2"}, "the polynomial kernel has no random features"),
        ({"kernel": "gaussian * (laplacian + gaussian)"}, "a product is of kernels such as gaussian and laplacian"),
        ({"kernel": "0.5*linear + 0.5*gaussian*arccos1"}, "which arccos is not"),
        ({"kernel": "gaussian o pca:2 o laplacian#20", "sampling": "orthogonal"}, "not for laplacian"),
        ({"num_features": 101}, "101 random features: cosine-and-sine pairs need an even number"),
        ({"kernel": "gaussian o gaussian#21"}, "21 random features: cosine-and-sine pairs need an even number"),
        ({"selection": "5 5"}, "5 5 does not increase from above 0 to below the 50 frequencies"),
        ({"selection": "60", "sampling": "independent", "num_features": 50}, "below the 50 frequencies"),
        ({"selection": "x"}, "--selection takes the number of rounds"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(KernelamError, match=sentence):
        KernelPlan(**{"kernel": "gaussian", "bandwidths": (1.0,), "num_features": 100, **given})


@pytest.mark.parametrize(
    ("given", "options", "sentence"),
    [
        ({"bottleneck": 6}, {}, "a bottleneck of 6 is no narrower than the 6 classes"),
        ({"bottleneck": 2}, {"optimiser": "sag"}, "--optimiser sag is for the convex problem"),
        ({"precondition": 2}, {"optimiser": "sag"}, "--precondition damps the gradients of sgd, not of sag"),
        ({"kernel": "posteriors:nowhere"}, {}, "nowhere holds no trained model"),
        ({"features_of": "nowhere"}, {}, "nowhere holds no trained model"),
    ],
)
def test_what_does_not_go_with_options_or_classes_is_a_sentence(given: Any, options: Any, sentence: str) -> None:
    plan = KernelPlan(**{"kernel": "gaussian", "bandwidths": (1.0,), "num_features": 100, **given})
    with pytest.raises(KernelamError, match=sentence):
        plan.check(TrainingOptions((1.0,), 100, **options), 6)


def test_what_cannot_be_known_before_frames_are_there_is_let_pass() -> None:
    """A billion features are not drawn to find out whether they can be."""
    for kernel in ("sparse-gaussian:999999999", "gaussian o (sparse-gaussian:9 * laplacian)", "gaussian + laplacian"):
        KernelPlan(kernel, (1.0,), 10**9)


def test_memory_of_inner_maps_and_of_the_moments_between_counts() -> None:
    plan = KernelPlan("gaussian o fda:5 o laplacian#300", (1.0,), 100)
    assert plan._projections(parse(plan.kernel), 40, 100) == 40 * 150 + 12 * 300**2 + 5 * 50
    plan = KernelPlan("gaussian o pca:5", (1.0,), 100, sampling="independent")
    assert plan._projections(parse(plan.kernel), 40, 100) == 12 * 40**2 + 5 * 100


def test_draws_of_rounds_and_blocks_do_not_overlap() -> None:
    plans = [KernelPlan("gaussian", (1.0,), 4000, block=block, blocks=2) for block in (1, 2)]
    begins = sorted(plan._first_block(number) for plan in plans for number in range(3))
    assert begins == [0, 4, 8, 12, 16, 20]  # 2000 columns at most are four blocks of 500


def test_memory_that_is_not_there_is_refused_with_the_figures() -> None:
    check_memory(2**30, 2**31, "it", "less is more")
    with pytest.raises(KernelamError, match=r"it takes 2\.00 GiB of memory, and 1\.00 GiB are free; less is more"):
        check_memory(2**31, 2**30, "it", "less is more")
