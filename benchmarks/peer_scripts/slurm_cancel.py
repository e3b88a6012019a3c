"""Slurm on one node, started by hand: `slurm_cancel.py cgroup|pgid|linuxproc`.

All need root; `cgroup` needs a writable freezer hierarchy too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import socket
import sys
from pathlib import Path

from conversation import daemon, hold, output_of, until

LIBRARY = "/usr/lib/x86_64-linux-gnu/slurm-wlm/libslurmfull.so"
FREEZER = Path("/sys/fs/cgroup/freezer")
OVER = {"CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL"}
CONFIGURATION = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/{tracking}
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1
SlurmdParameters=config_overrides
NodeName={host} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=32 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
CGROUPS = """\
CgroupMountpoint=/sys/fs/cgroup
CgroupPlugin=cgroup/v1
CgroupAutomount=no
ConstrainCores=no
ConstrainRAMSpace=no
"""


class Slurm:
    def __init__(self, folder: Path, tracking: str) -> None:
        self.folder = folder
        self.library: ctypes.CDLL | None = None
        self.before = _groups()
        for name in ("state", "spool"):
            (folder / name).mkdir()
        host = socket.gethostname().partition(".")[0]
        text = CONFIGURATION.format(folder=folder, tracking=tracking, host=host)
        (folder / "slurm.conf").write_text(text)
        (folder / "cgroup.conf").write_text(CGROUPS)
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")

    def start(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        places = [f"--{name}-file={self.folder}/munge.{name}" for name in ("key", "log", "pid")]
        places += [f"--seed-file={self.folder}/munge.seed", f"--socket={self.folder}/munge.socket"]
        daemon(self.folder, "munged", "munged", "--foreground", "--force", *places)
        until((self.folder / "munge.socket").exists, 10, "munged")
        daemon(self.folder, "slurmctld", "slurmctld", "-D")
        daemon(self.folder, "slurmd", "slurmd", "-D")
        until(self._idle, 20, "a node that is idle")

    def _idle(self) -> bool:
        with contextlib.suppress(RuntimeError):
            return output_of("sinfo", "--noheader", "--format=%T").strip() == "idle"
        return False

    def submit(self, command: list[str]) -> str:
        options = ["--parsable", "--output=/dev/null", "--ntasks=1", "--cpus-per-task=1"]
        return output_of("sbatch", *options, *command[1:], cwd=self.folder).strip()

    def cancel(self, ref: str) -> None:
        output_of("scancel", ref)

    def cancel_by_library(self, ref: str) -> None:
        """What `scancel` does, without the start of a program."""
        if self.library is None:
            self.library = _library(self.folder)
        if self.library.slurm_kill_job(int(ref), signal.SIGKILL, 0) != 0:
            raise RuntimeError("slurm_kill_job refused")

    def state(self, ref: str) -> tuple[str, bool]:
        shown = output_of("scontrol", "--oneliner", "show", "job", ref)
        state = shown.partition("JobState=")[2].split()[0]
        return state, state in OVER

    def close(self) -> None:
        """The groups that its daemons made."""
        for group in sorted(_groups() - self.before, key=lambda path: -len(path.parts)):
            with contextlib.suppress(OSError):
                group.rmdir()


def _groups() -> set[Path]:
    return (
        {path for path in FREEZER.glob("slurm*/**") if path.is_dir()}
        if FREEZER.exists()
        else set()
    )


def _library(folder: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(LIBRARY, mode=ctypes.RTLD_GLOBAL)
    library.slurm_init(str(folder / "slurm.conf").encode())
    library.slurm_kill_job.argtypes = [ctypes.c_uint32, ctypes.c_uint16, ctypes.c_uint16]
    return library


if __name__ == "__main__":
    hold(lambda folder: Slurm(folder, sys.argv[1]))
