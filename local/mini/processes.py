"""A process of its own for every task."""

import multiprocessing as mp
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from kernelam.errors import KernelamError

Task = TypeVar("Task")
Result = TypeVar("Result")


def each_alone(function: Callable[[Task], Result], tasks: Sequence[Task], nj: int) -> Iterator[Result]:
    """function(task) for every task, in order, each in a fresh fork of this process, at most `nj` at once.

    Nothing that a task does (initialise a library, draw a number) can reach another one, so the results are the same
    for every `nj`. If this process dies, its children end after their task.
    """
    fork = mp.get_context("fork")
    running: dict[Connection, tuple[int, BaseProcess]] = {}
    done: dict[int, Any] = {}
    started = yielded = 0
    try:
        while yielded < len(tasks):
            while started < len(tasks) and len(running) < nj:
                ours, theirs = fork.Pipe(duplex=False)
                child = fork.Process(target=_work, args=(function, tasks[started], theirs))
                child.start()
                theirs.close()
                running[ours] = (started, child)
                started += 1
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                index, process = running.pop(ready)
                done[index] = _receive(ready, process, tasks[index])
            while yielded in done:
                yield done.pop(yielded)
                yielded += 1
    finally:
        for _, process in running.values():
            process.terminate()
            process.join()


def _work(function: Callable[[Task], Result], task: Task, pipe: Connection) -> None:
    try:
        pipe.send(function(task))
    except KernelamError as error:
        pipe.send(error)
    except BrokenPipeError:
        pass  # the parent is gone


def _receive(pipe: Connection, process: BaseProcess, task: object) -> Any:
    try:
        result = pipe.recv()
    except EOFError:
        process.join()
        raise KernelamError(f"the process for {task} ended with status {process.exitcode}; see the log above") from None
    finally:
        pipe.close()
    process.join()
    if isinstance(result, KernelamError):
        raise result
    return result
