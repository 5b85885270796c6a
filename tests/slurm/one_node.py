"""A real Slurm of one node, in a folder of its own: its daemons, their ports and keys, and nothing of the machine's."""

import os
import pwd
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")

CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
MinJobAge=300
KillWait=1
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """What the environment of its users has besides, while it runs."""
    host = socket.gethostname().split(".")[0]
    folder.chmod(0o755)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    conf = folder / "slurm.conf"
    cores, user = len(os.sched_getaffinity(0)), pwd.getpwuid(os.getuid()).pw_name
    conf.write_text(CONF.format(host=host, ports=_free_ports(2), folder=folder, cores=cores, user=user))
    variables = {"SLURM_CONF": str(conf)}
    env = {**os.environ, **variables, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
    munge = ["munged", "-F", "--force", f"--socket={folder}/munge.socket", f"--key-file={key}"]
    munge += [f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed"]
    daemons = []
    try:
        for command, made in ((munge, "munge.socket"), (["slurmctld", "-D"], ""), (["slurmd", "-D"], "")):
            daemons.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            while made and not (folder / made).exists():
                assert daemons[-1].poll() is None, f"{command[0]} ended"
                time.sleep(0.1)
        for _ in range(300):
            idle = subprocess.run(["sinfo", "-h", "-o", "%t"], env=env, capture_output=True, text=True).stdout.split()
            if idle == ["idle"]:
                break
            time.sleep(0.2)
        else:
            logs = "".join((folder / f"{name}.log").read_text()[-2000:] for name in ("slurmctld", "slurmd"))
            raise AssertionError(f"Slurm did not start:\n{logs}")
        yield variables
    finally:
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
