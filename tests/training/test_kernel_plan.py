"""What a plan of a kernel model refuses before any work."""

from typing import Any

import pytest

from kernelam.errors import KernelamError
from kernelam.memory import check_memory
from kernelam.training.kernel import KernelPlan


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"bandwidths": (1.0, 0.0)}, "a bandwidth must be above zero, not 0"),
        ({"block": 3, "blocks": 2}, "there is no block 3 of 2"),
        ({"num_features": 4, "blocks": 5}, "4 features do not divide into 5 blocks"),
        ({"features_of": "exp/k", "selection": "5"}, "which leaves none to --selection"),
        ({"kernel": "gaussian o fda:9", "selection": "5"}, "--selection is for a single kernel or a product"),
        ({"kernel": "gaussian + laplacian", "blocks": 2}, "--blocks is for a single kernel or a product"),
        ({"blocks": 2, "bottleneck": 8}, "they cannot have a bottleneck"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(KernelamError, match=sentence):
        KernelPlan(**{"kernel": "gaussian", "bandwidths": (1.0,), "num_features": 100, **given})


def test_draws_of_rounds_and_blocks_do_not_overlap() -> None:
    plans = [KernelPlan("gaussian", (1.0,), 4000, block=block, blocks=2) for block in (1, 2)]
    begins = sorted(plan._first_block(number) for plan in plans for number in range(3))
    assert begins == [0, 4, 8, 12, 16, 20]  # 2000 columns at most are four blocks of 500


def test_memory_that_is_not_there_is_refused_with_the_figures() -> None:
    check_memory(2**30, 2**31, "it", "less is more")
    with pytest.raises(KernelamError, match=r"it takes 2\.0 GiB of memory, and 1\.0 GiB are free; less is more"):
        check_memory(2**31, 2**30, "it", "less is more")
