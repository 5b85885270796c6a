"""The last look at a model: sweeps of metrics, confusions and class means, against the same by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix

from kernelam.frames.batches import Batches
from kernelam.frames.store import FrameStore
from kernelam.frontend.pipeline import Pipeline
from kernelam.hmm.transitions import TransitionModel
from kernelam.kernels import Gaussian
from kernelam.models.arrays import read_arrays
from kernelam.models.description import CLASS_MEANS
from kernelam.models.posterior import Inputs
from kernelam.models.softmax import KernelSoftmax
from kernelam.training.examination import SWEEPS, class_phones, examine
from kernelam.training.metrics import evaluate

CPU, DIM = torch.device("cpu"), 4
PHONES = ["sil", "a", "a", "b", "unseen"]


@pytest.fixture
def heldout(tmp_path: Path) -> Batches:
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=500, dtype=np.int32)
    x = (rng.standard_normal((500, DIM)) + labels[:, None]).astype(np.float32)
    store = FrameStore.build(tmp_path / "frames", [("u", x)], {"u": labels})
    return Batches(store, (0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32), CPU)


@pytest.fixture
def model(heldout: Batches) -> KernelSoftmax:
    kernel, inputs = Gaussian(2.0), Inputs((0, 0), np.zeros(DIM, np.float32), np.ones(DIM, np.float32))
    made = KernelSoftmax(kernel, kernel.feature_map(DIM, 40, 1), 0, Pipeline(), inputs, np.ones(5), CPU)
    made.initialise(1)
    for frames in heldout.shuffled(25, 1, 1):
        made.step(*heldout.take(frames), 2.0)
    return made


def test_sweeps_are_the_metrics(model: KernelSoftmax, heldout: Batches) -> None:
    found = examine(model, heldout, PHONES, size=77).metrics
    for name in ("capped", "top-k"):
        assert found[name]["parameters"] == list(SWEEPS[name])
        for place in (0, 7, len(SWEEPS[name]) - 1):
            watched = f"{name}:{SWEEPS[name][place]}"
            values = list(evaluate(model, heldout, watched).values())
            assert found[name]["values"][place] == pytest.approx(values[2], rel=1e-9)
    assert found["top-k"]["values"][0] == pytest.approx(evaluate(model, heldout)["ce"])


def test_confusions_are_of_phones(model: KernelSoftmax, heldout: Batches) -> None:
    x, labels = next(heldout.in_order(len(heldout)))
    refs, hyps = ([PHONES[number] for number in some.tolist()] for some in (labels, model.logits(x).argmax(dim=1)))
    names = ["sil", "a", "b", "unseen"]
    counts = confusion_matrix(refs, hyps, labels=names)
    expected = {(names[i], names[j]): n for (i, j), n in np.ndenumerate(counts) if i != j and n}
    found = examine(model, heldout, PHONES, size=77).confusions
    assert {(ref, hyp): n for ref, hyp, n in found} == expected
    assert [n for _, _, n in found] == sorted(expected.values(), reverse=True)


def test_class_means_keep_their_distances(model: KernelSoftmax, heldout: Batches, tmp_path: Path) -> None:
    x, labels = next(heldout.in_order(len(heldout)))
    logits = model.logits(x).double()
    logits -= logits.mean(dim=1, keepdim=True)
    means = torch.stack([logits[labels == number].mean(dim=0) for number in range(4)])
    seen = examine(model, heldout, PHONES, size=77)
    seen.save(tmp_path)
    arrays, about = read_arrays(tmp_path / CLASS_MEANS)
    assert about == {"phones": PHONES[:4]}
    assert arrays["classes"].tolist() == [0, 1, 2, 3]
    assert arrays["frames"].tolist() == torch.bincount(labels).tolist()
    distances = torch.cdist(arrays["means"], arrays["means"]).double()
    torch.testing.assert_close(distances, torch.cdist(means, means), rtol=1e-5, atol=1e-5)
    assert torch.equal(arrays["means"], examine(model, heldout, PHONES, size=77).means)


def test_classes_have_the_names_of_their_phones(corpora: Path) -> None:
    folder = corpora / "kaldi-timit-sample/exp/tri3_ali_dev"
    transitions = TransitionModel.load(folder / "final.mdl")
    phones = class_phones(transitions, folder / "phones.txt")
    assert len(phones) == transitions.num_pdfs
    assert {"sil", "aa", "sh"} <= set(phones)
