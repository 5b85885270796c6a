"""Cells of experiments, each a model that is trained, decoded and scored as a job of its own."""

import json
import math
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kernelam.current import run_once
from kernelam.errors import KernelamError
from kernelam.files import alone_in, replacing
from kernelam.kaldi.tables import read_table
from kernelam.records import read_record

DONE = "cell.done"  # in the folder of a cell that came to its end: what it was
WORK = "cell.json"  # when its steps began and ended
MODEL = ("model.safetensors", "ali_train_pdf.counts", "final.mdl", "model.json")
SENTENCE = r"(kernelam[a-z -]*|\S+\.(sh|pl)): "  # of an error, how it begins
TABLES = ("feats.scp", "cmvn.scp", "utt2spk")


@dataclass(frozen=True)
class Cell:
    name: str
    folder: Path
    train: list[str]  # the whole command
    needs: tuple[str, ...] = ()  # the cells whose models it reads
    decoded: bool = True


@dataclass(frozen=True)
class Work:
    """What was done for a cell, from when to when in seconds."""

    step: str  # train, decode_<set>
    start: float
    end: float


@dataclass(frozen=True)
class Experiments:
    """`cells` are in an order in which none comes before one that it needs, nor before one that needs fewer."""

    title: str
    folder: Path
    data: list[str]  # training and heldout data, lang, and their two alignments
    decode: list[str]
    graph: str
    tuned: Path
    tested: Path
    cells: list[Cell]
    spared: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Names of cells that are known from elsewhere, and run only for their models."""

    @property
    def sets(self) -> tuple[str, str]:
        return self.tuned.name, self.tested.name

    @cached_property
    def waves(self) -> list[range]:
        """Numbers, from 1, of cells that can run side by side; all cells before them are done."""
        depth: dict[str, int] = {}
        for cell in self.cells:
            depth[cell.name] = 1 + max((depth[need] for need in cell.needs), default=-1)
        starts = [list(depth.values()).index(level) + 1 for level in range(max(depth.values()) + 1)]
        return [range(*pair) for pair in zip(starts, [*starts[1:], len(self.cells) + 1], strict=True)]

    def check(self) -> None:
        """What all cells read is there."""
        for place in map(Path, (*self.data, self.graph, str(self.tuned), str(self.tested))):
            if not place.exists():
                raise KernelamError(f"there is no {place}, which the cells of {self.folder} read")

    def run_cell(self, cell: Cell) -> None:
        """Train, decode and score, unless it is done and current; its mark stands while nothing of it is made again.

        What it holds against others is the folder of its logs: that of the model is held by training itself.
        """
        with alone_in(cell.folder / "log"):
            try:
                self._run_steps(cell)
            except BaseException:
                (cell.folder / DONE).unlink(missing_ok=True)
                raise
            with replacing(cell.folder / DONE, "w") as stream:
                stream.write(self.commands(cell))

    def _run_steps(self, cell: Cell) -> None:
        needed_cells = [other for other in self.cells if other.name in cell.needs]
        if absent := [other.name for other in needed_cells if not self.done(other)]:
            raise KernelamError(f"{cell.name} needs the model of {absent[0]}, which is not done")
        model = [cell.folder / name for name in MODEL]
        tables = [path for data in self.data[:2] for path in _tables(Path(data))]
        models = [other.folder / name for other in needed_cells for name in MODEL]
        self._step(cell, "train", [*tables, *map(Path, self.data[3:]), *models], model, cell.train)
        tuning = cell.folder / f"decode_{self.tuned.name}"
        for data in (self.tuned, self.tested) if cell.decoded else ():
            output = cell.folder / f"decode_{data.name}"
            more = [] if data == self.tuned else ["--tuned-on", str(tuning)]
            needed = [
                *_tables(data, "text"),
                *model,
                Path(self.graph),
                *([tuning / "scoring_kaldi/best_wer"] if more else []),
            ]
            self._step(cell, output.name, needed, [output], [*self.decode, *more, self.graph, str(data), str(output)])

    def _step(self, cell: Cell, step: str, inputs: list[Path], outputs: list[Path], command: list[str]) -> None:
        """Run a command once, and note when, if it made something; what it made before no longer counts."""
        before, start = _changed(outputs), time.time()
        run_once(inputs, outputs, command, force=False, mark=cell.folder / DONE)
        if _changed(outputs) != before:
            earlier = [row for row in _rows(cell) if not step.startswith(row[0])]  # both sets were once called decode
            rows = [*earlier, [step, start, time.time()]]
            with replacing(cell.folder / WORK, "w") as stream:
                json.dump({"work": rows}, stream)

    def work(self, cell: Cell) -> list[Work]:
        return [Work(str(step), float(start), float(end)) for step, start, end in _rows(cell)]

    def log(self, number: int | str) -> Path:
        return self.folder / "log" / f"cell.{number}.log"

    def run(self, cmd: Sequence[str], itself: Sequence[str]) -> None:
        """All cells as jobs of `cmd`, each by the command `itself` with its number; those that fail are told later."""
        log = self.log("JOB")
        log.parent.mkdir(parents=True, exist_ok=True)
        for number, cell in enumerate(self.cells, 1):
            if not self.done(cell):  # what is there is of another cell, or of an earlier run
                self.log(number).unlink(missing_ok=True)
        statuses = []
        for wave in self.waves:
            jobs = f"JOB={wave.start}:{wave.stop - 1}"
            statuses.append(subprocess.run([*cmd, jobs, str(log), *itself, "JOB"], check=False).returncode)
        if any(statuses) and not self.failures():
            raise KernelamError(f"{cmd[0]} failed with status {max(statuses)}, although no cell did")

    def commands(self, cell: Cell) -> str:
        """All that a cell is made by."""
        decoding = [*self.decode, self.graph, str(self.tuned), str(self.tested)] if cell.decoded else []
        return json.dumps([cell.train, decoding])

    def done(self, cell: Cell) -> bool:
        """Whether it came to its end as it is declared now."""
        path = cell.folder / DONE
        return path.exists() and path.read_text() == self.commands(cell)

    def wanted(self, cell: Cell) -> bool:
        """Whether it is to run: it is not known from elsewhere, or one that runs reads its model."""
        return cell.name not in self.spared or any(cell.name in one.needs and self.wanted(one) for one in self.cells)

    def failures(self, lines: int = 5) -> dict[str, list[str]]:
        """The last lines of the log of each cell that has no result."""
        found = {}
        for number, cell in enumerate(self.cells, 1):
            if self.wanted(cell) and not self.done(cell):
                log = self.log(number)
                text = log.read_text(errors="replace").splitlines() if log.exists() else ["it was never begun"]
                found[cell.name] = [line for line in text if line.strip() and not line.startswith("#")][-lines:]
        return found


def cause(lines: Sequence[str]) -> str:
    """Why a cell failed, by the end of its log: the sentence of the script that did, if it said one."""
    match lines:
        case [*_, said, last] if re.search(r" failed with status \d+$", last) and re.match(SENTENCE, said):
            return said
        case [*_, last]:
            return last
    return "its log is empty"


def _tables(data: Path, *more: str) -> list[Path]:
    """Those of a data directory that features come from, as far as it has them, and the archives that they name."""
    tables = [data / name for name in (*TABLES, *more) if (data / name).exists()]
    values = [value for table in tables if table.suffix == ".scp" for value in read_table(table).values()]
    archives = sorted({Path(value.rpartition(":")[0] or value) for value in values if not value.endswith("|")})
    return [*tables, *(archive for archive in archives if archive.exists())]


def _changed(paths: list[Path]) -> list[int]:
    """When the files that are there were."""
    return [path.stat().st_mtime_ns for path in paths if path.exists()]


def _rows(cell: Cell) -> list[list]:
    path = cell.folder / WORK
    rows = read_record(path, "nothing was done").get("work") if path.exists() else []
    if not (isinstance(rows, list) and all(map(_is_row, rows))):
        raise KernelamError(f"{path} is damaged: it is no list of steps, each with when it began and ended")
    return rows


def _is_row(row: Any) -> bool:
    match row:
        case [str(), int() | float() as start, int() | float() as end]:
            return -math.inf < start <= end < math.inf
    return False
