"""Processes that crashed, or that somebody or something outside ended."""

from __future__ import annotations

import re

from runyard.domain.failures.categories import Category
from runyard.domain.failures.signature import Signature, cascade
from runyard.domain.failures.signatures import host_memory

_CRASH = Category.CRASH
INTERRUPTED = "interrupted"  # by somebody at the keyboard, or as if
_STOP, _KILL = Category.EXTERNAL_STOP, Category.UNKNOWN_KILL

# fmt: off
# One signature, one line, with its sample as long as it is: a table.
SIGNATURES = (
    Signature(Category.SEGFAULT, "Fatal Python error: Segmentation fault", "Fatal Python error: Segmentation fault", confidence=0.96),
    Signature(Category.SEGFAULT, "Segmentation fault", "Segmentation fault (core dumped)", confidence=0.9),
    Signature(Category.SEGFAULT, "segmentation fault encountered in worker", "ERROR: Unexpected segmentation fault encountered in worker.", confidence=0.95),
    Signature(Category.SEGFAULT, "is killed by signal: Segmentation fault", "RuntimeError: DataLoader worker (pid 624) is killed by signal: Segmentation fault. ", confidence=0.96),
    Signature(_CRASH, "is killed by signal: Aborted", "RuntimeError: DataLoader worker (pid 811) is killed by signal: Aborted. ", confidence=0.93),
    Signature(_KILL, "is killed by signal: Terminated", "RuntimeError: DataLoader worker (pid 8102) is killed by signal: Terminated. ", confidence=0.75),
    Signature(Category.SEGFAULT, "*** Process received signal ***", "*** Process received signal ***", confidence=0.7),
    Signature(Category.SEGFAULT, "SIGSEGV", "A fatal error has been detected: SIGSEGV (0xb) at pc=0x00007f2", confidence=0.85, loose=True),
    Signature(_CRASH, "Fatal Python error: Bus error", "Fatal Python error: Bus error", confidence=0.93),
    Signature(_CRASH, "Fatal Python error: Aborted", "Fatal Python error: Aborted", confidence=0.65),
    Signature(_CRASH, "double free or corruption", "double free or corruption (!prev)", confidence=0.95),
    Signature(_CRASH, "malloc(): ", "malloc(): unaligned tcache chunk detected", confidence=0.93, starts=True),
    Signature(_CRASH, "free(): ", "free(): corrupted unsorted chunks", confidence=0.93, starts=True),
    Signature(_CRASH, "munmap_chunk(): invalid pointer", "munmap_chunk(): invalid pointer", confidence=0.95),
    Signature(_CRASH, "corrupted size vs. prev_size", "corrupted size vs. prev_size", confidence=0.95),
    Signature(_CRASH, "corrupted double-linked list", "corrupted double-linked list (not small)", confidence=0.95),
    Signature(_CRASH, "Fatal glibc error", "Fatal glibc error: malloc.c:2599 (sysmalloc): assertion failed", confidence=0.93),
    Signature(_CRASH, "stack smashing detected", "*** stack smashing detected ***: terminated", confidence=0.93),
    Signature(_CRASH, "pure virtual method called", "pure virtual method called", confidence=0.9),
    Signature(_CRASH, "BrokenProcessPool", "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running or pending.", confidence=0.8),
    cascade("terminate called after throwing an instance of", "terminate called after throwing an instance of 'c10::DistBackendError'"),
    cascade("terminate called without an active exception", "terminate called without an active exception"),
    Signature(Category.TIME_LIMIT, "DUE TO TIME LIMIT", "slurmstepd: error: *** JOB 184467 ON gpu017 CANCELLED AT 2026-03-11T04:00:12 DUE TO TIME LIMIT ***", confidence=0.99),
    Signature(Category.TIME_LIMIT, "this job is timed-out", "submitit WARNING (2026-03-11 04:00:12) - Bypassing signal SIGUSR1: this job is timed-out", confidence=0.95),
    Signature(Category.TIME_LIMIT, "TERM_RUNLIMIT", "TERM_RUNLIMIT: job killed after reaching LSF run time limit.", confidence=0.98),
    Signature(Category.TIME_LIMIT, "alltime", "=>> PBS: job killed: walltime 86431 exceeded limit 86400", confidence=0.95, pattern=re.compile(r"(?i)\bkill|exceed|reached|expired")),
    Signature(Category.TIME_LIMIT, "ime limit", "job terminated: wall clock time limit reached", confidence=0.85, pattern=re.compile(r"(?i)\b(?:job|step|task|kill\w{0,3}|terminat\w{0,3}|cancel\w{0,4})\b")),
    Signature(Category.HOST_OOM, "TERM_MEMLIMIT", "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", confidence=0.98, variant=host_memory.CONFIRMED),
    Signature(Category.PREEMPTED, "nterruption notice", "[spot] instance interruption notice received: terminate at 2026-03-11T04:14:10Z", confidence=0.95),
    Signature(Category.PREEMPTED, "reempt", "received preemption signal from the scheduler, saving and leaving", confidence=0.9, pattern=re.compile(r"(?i)\b(?:received|being|was|will be|got|by|notice|signal)\b.{0,40}preempt|preempt\w{0,5} (?:notice|signal|event|request)")),
    Signature(Category.PREEMPTED, "DUE TO PREEMPTION", "slurmstepd: error: *** STEP 184467.0 ON gpu017 CANCELLED AT 2026-03-11T04:00:12 DUE TO PREEMPTION ***", confidence=0.99),
    Signature(Category.PREEMPTED, "DUE TO NODE FAILURE", "slurmstepd: error: *** JOB 184467 ON gpu017 CANCELLED AT 2026-03-11T04:00:12 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***", confidence=0.99),
    Signature(Category.PREEMPTED, "DUE TO JOB REQUEUE", "slurmstepd: error: *** JOB 184467 ON gpu017 CANCELLED AT 2026-03-11T04:00:12 DUE TO JOB REQUEUE ***", confidence=0.99),
    Signature(Category.PREEMPTED, "this job is preempted", "submitit WARNING - Caught signal SIGTERM on gpu017: this job is preempted.", confidence=0.97),
    Signature(Category.PREEMPTED, "The node was low on resource", "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 3Gi.", confidence=0.95),
    Signature(Category.PREEMPTED, "Instance is being preempted", "Received maintenance event: Instance is being preempted, terminating in 30 seconds", confidence=0.95),
    Signature(_STOP, "CANCELLED AT", "slurmstepd: error: *** STEP 184467.0 ON gpu017 CANCELLED AT 2026-03-11T04:00:12 ***", confidence=0.93, pattern=re.compile(r"CANCELLED AT \S{1,40} \*\*\*")),
    Signature(_STOP, "KeyboardInterrupt", "KeyboardInterrupt", confidence=0.9, starts=True, variant=INTERRUPTED),
    Signature(_STOP, "Detected KeyboardInterrupt", "Detected KeyboardInterrupt, attempting graceful shutdown ...", confidence=0.93, variant=INTERRUPTED),
    Signature(_STOP, "^C", "^C", confidence=0.9, starts=True, pattern=re.compile(r"^\^C(?:\^C)?(?:Traceback|$)"), variant=INTERRUPTED),
    Signature(_STOP, "is killed by signal: Interrupt", "RuntimeError: DataLoader worker (pid 91022) is killed by signal: Interrupt. ", confidence=0.75, variant=INTERRUPTED),
    Signature(_STOP, ("Received", "SIGINT death signal, shutting down workers"), "Received Signals.SIGINT death signal, shutting down workers", confidence=0.93),
    Signature(_STOP, "got signal: 2", "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 2", confidence=0.95, pattern=re.compile(r"got signal: 2$")),
    Signature(_KILL, "got signal: ", "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 15", confidence=0.9),
    Signature(_KILL, ("Received", "death signal, shutting down workers"), "Received Signals.SIGHUP death signal, shutting down workers", confidence=0.92, pattern=re.compile(r"Received (?:Signals\.)?\w{1,20} death signal")),
    Signature(_KILL, "Killed", "train.sh: line 4: 31337 Killed                  python train.py", confidence=0.6, pattern=re.compile(r"^Killed$|line \d{1,6}: +\d{1,9} Killed\b|(?:^|\s)Killed$")),
    Signature(_KILL, "Terminated", "Terminated", confidence=0.55, pattern=re.compile(r"^Terminated$|line \d{1,6}: +\d{1,9} Terminated\b")),
)
