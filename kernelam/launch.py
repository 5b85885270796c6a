"""Processes of this machine that work together, started by PyTorch's own launcher."""

import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from signal import SIGTERM, Signals

from kernelam.errors import KernelamError


class Lost(KernelamError):
    """A process that did not end by itself."""


def launch(processes: int, command: Sequence[str], threads: int | None = None) -> int:
    """Run `kernelam COMMAND` so many times at once, each with so many threads, or with its share of those that one
    process would have; its status, once all have ended."""
    import torch
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.disable(logging.ERROR)  # that a child has failed is told once, by us
    share = max(1, torch.get_num_threads() // processes)  # not of OMP_NUM_THREADS, which is ours the second time
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads or share)
    with tempfile.TemporaryDirectory() as folder:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=processes,
            run_id=f"kernelam-{os.getpid()}",
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            local_addr="localhost",
            max_restarts=0,
            monitor_interval=0.1,
            logs_specs=DefaultLogsSpecs(log_dir=folder),
        )
        try:
            elastic_launch(config, sys.executable)("-m", "kernelam", *command)
        except ChildFailedError as error:
            codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
            said = [code for code in codes.values() if code > 0]
            for rank, code in codes.items():
                # whoever lost contact to it may have ended first; and the others are ended by SIGTERM
                if code < 0 and (code != -SIGTERM or not said):
                    raise Lost(f"process {rank + 1} of {processes} was ended by {Signals(-code).name}") from None
            return said[0]
        except SignalException as error:  # the others have been ended
            raise KernelamError(f"ended by {Signals(error.sigval).name}") from None
    return 0
