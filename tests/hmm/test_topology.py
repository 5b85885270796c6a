import io
from pathlib import Path

import pytest

from kernelam.errors import KernelamError
from kernelam.hmm.topology import State, Topology
from kernelam.kaldi.binary import KaldiReader, KaldiWriter


def chain() -> Topology:
    """One state with a pdf class for entering and another for staying, as chain models have."""
    return Topology(((State(0, 1, ((0, 0.5), (1, 0.5))), State(-1, -1, ())),), {1: 0, 3: 0})


def serialised(topology: Topology, binary: bool) -> bytes:
    stream = io.BytesIO()
    topology.write(KaldiWriter(stream, binary))
    return stream.getvalue()


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("topology", [chain(), Topology.left_to_right([2, 4], [1], 3, 5)])
def test_round_trip(topology: Topology, binary: bool) -> None:
    assert Topology.read(KaldiReader(serialised(topology, binary), "x")) == topology


def test_chain_layout() -> None:
    assert not chain().is_hmm
    assert b"<ForwardPdfClass> 0 <SelfLoopPdfClass> 1 <Transition> 0 0.5" in serialised(chain(), False)
    # phones 1 and 3; entry by phone; the mark -1; one entry of two states; classes 0 and 1
    numbers = [4, 2, 1, 3], [4, 4, -1, 0, -1, 0]
    head = b"".join(
        bytes([row[0]]) + b"".join(n.to_bytes(4, "little", signed=True) for n in row[1:]) for row in numbers
    )
    tail = b"".join(b"\x04" + n.to_bytes(4, "little", signed=True) for n in (-1, 1, 2, 0, 1, 2, 0))
    assert serialised(chain(), True).startswith(b"\0B<Topology> " + head + tail)


def test_silence_topologies() -> None:
    states = Topology.left_to_right([2], [1], 3, 4).states(1)
    third = pytest.approx(1 / 3)
    assert [dict(state.transitions) for state in states] == [
        {0: third, 1: third, 2: third},
        {1: third, 2: third, 3: third},
        {1: third, 2: third, 3: third},
        {3: 0.75, 4: 0.25},
        {},
    ]
    assert len(Topology.left_to_right([2], [1], 3, 1).states(1)) == 2


@pytest.mark.parametrize("binary", [True, False])
def test_truncation(binary: bool) -> None:
    data = serialised(chain(), binary)
    for length in range(len(data) - 3):
        with pytest.raises(KernelamError, match="x"):
            Topology.read(KaldiReader(data[:length], "x"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.75", "0.5", "do not sum to 1"),
        ("<Transition> 1 0.25", "<Transition> 9 0.25", "leads nowhere"),
        ("<State> 1", "<State> 2", "not numbered"),
        ("<PdfClass> 0 ", "", "emits nothing but has a self-loop"),
        ("<ForPhones>\n2", "<ForPhones>\n2 2", "phone 2 a second time"),
        ("<State> 3 </State>", "<State> 3 <PdfClass> 3 </State>", "not a plain final state"),
        ("<PdfClass>", "<Pdf>", "'<Pdf>' in a state"),
    ],
)
def test_bad_topologies(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = "\n".join(Topology.left_to_right([2], [1]).topo_text())
    path = tmp_path / "topo"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(KernelamError, match=message):
        Topology.load(path)
