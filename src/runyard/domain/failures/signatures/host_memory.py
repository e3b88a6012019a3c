"""Memory of the machine, shared memory and open files that did not suffice."""

from __future__ import annotations

import re

from runyard.domain.failures.categories import Category
from runyard.domain.failures.signature import Signature

_OOM = Category.HOST_OOM
CONFIRMED = "confirmed"  # said by what killed it

# fmt: off
# One signature, one line, with its sample as long as it is: a table.
SIGNATURES = (
    Signature(_OOM, "DefaultCPUAllocator: can't allocate memory", "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: can't allocate memory: you tried to allocate 68719476736 bytes. Error code 12 (Cannot allocate memory)", confidence=0.99),
    Signature(_OOM, "DefaultCPUAllocator: not enough memory", "RuntimeError: [enforce fail at alloc_cpu.cpp:80] data. DefaultCPUAllocator: not enough memory: you tried to allocate 4294967296 bytes.", confidence=0.99),
    Signature(_OOM, "_ArrayMemoryError", "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 59.6 GiB for an array with shape (80000, 100000) and data type float64", confidence=0.99),
    Signature(_OOM, ("Unable to allocate", "for an array with shape"), "MemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64", confidence=0.98),
    Signature(_OOM, "MemoryError", "MemoryError", starts=True, confidence=0.95, general=True),
    Signature(_OOM, ("memory allocation of", "bytes failed"), "memory allocation of 34359738368 bytes failed", confidence=0.95),
    Signature(_OOM, "std::bad_alloc", "  what():  std::bad_alloc", confidence=0.92),
    Signature(_OOM, "[Errno 12] Cannot allocate memory", "OSError: [Errno 12] Cannot allocate memory", confidence=0.95),
    Signature(_OOM, "Cannot allocate memory", "fork: Cannot allocate memory", confidence=0.85, loose=True),
    Signature(_OOM, "pyarrow.lib.ArrowMemoryError", "pyarrow.lib.ArrowMemoryError: malloc of size 2147483648 failed", confidence=0.97),
    Signature(_OOM, ("OOM when allocating tensor with shape", "by allocator cpu"), "OOM when allocating tensor with shape[200000,40000] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu", confidence=0.985),
    Signature(_OOM, ("DataLoader worker (pid", "is killed by signal: Killed"), "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. ", confidence=0.95),
    Signature(_OOM, ("DataLoader worker", "exited unexpectedly"), "RuntimeError: DataLoader worker (pid(s) 2511, 2575) exited unexpectedly", confidence=0.75),
    Signature(_OOM, "Memory cgroup out of memory: Kill", "Memory cgroup out of memory: Killed process 31337 (python) total-vm:91234567kB, anon-rss:16777216kB", confidence=0.99, variant=CONFIRMED),
    Signature(_OOM, "Out of memory: Kill", "Out of memory: Killed process 2021 (python3) total-vm:134217728kB, anon-rss:65011712kB, file-rss:0kB", confidence=0.95, variant=CONFIRMED),
    Signature(_OOM, "oom-kill:constraint=CONSTRAINT_MEMCG", "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/runyard/job,task=python,pid=31337,uid=1000", confidence=0.99, variant=CONFIRMED),
    Signature(_OOM, ("slurmstepd: error: Detected", "kill event"), "slurmstepd: error: Detected 1 oom_kill event in StepId=184467.0. Some of the step tasks have been OOM Killed.", confidence=0.99, variant=CONFIRMED, pattern=re.compile(r"oom[-_]kill event")),
    Signature(_OOM, "Some of the step tasks have been OOM Killed", "srun: error: node017: task 3: Some of the step tasks have been OOM Killed", confidence=0.99, variant=CONFIRMED),
    Signature(_OOM, "OOMKilled", "Last State: Terminated  Reason: OOMKilled  Exit Code: 137", confidence=0.97, variant=CONFIRMED),
    Signature(_OOM, "killed due to the node running low on memory", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", confidence=0.98, variant=CONFIRMED),
    Signature(_OOM, "killed due to memory pressure (OOM)", "(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node", confidence=0.97, variant=CONFIRMED),
    Signature(_OOM, "NODE_OUT_OF_MEMORY", "Worker exit type: NODE_OUT_OF_MEMORY Worker exit detail: Task was killed", confidence=0.97, variant=CONFIRMED),
    Signature(_OOM, "A worker process managed by the executor was unexpectedly terminated", "joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process managed by the executor was unexpectedly terminated. This could be caused by a segmentation fault while calling the function or by an excessive memory usage causing the Operating System to kill the worker.", confidence=0.75),
    Signature(_OOM, "but all those workers died while running it", "distributed.scheduler.KilledWorker: Attempted to run task ('read-csv', 3) on 4 different workers, but all those workers died while running it.", confidence=0.8),
    Signature(Category.SHM, "Unexpected bus error encountered in worker", "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).", confidence=0.98),
    Signature(Category.SHM, "is killed by signal: Bus error", "RuntimeError: DataLoader worker (pid 1234) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.", confidence=0.98),
    Signature(Category.SHM, "unable to write to file </", "RuntimeError: unable to write to file </torch_1337_2718281828_0>: No space left on device (28)", confidence=0.98),
    Signature(Category.SHM, ("unable to mmap", "bytes from file </torch_"), "RuntimeError: unable to mmap 8388608 bytes from file </torch_4321_77_12>: Cannot allocate memory (12)", confidence=0.97),
    Signature(Category.SHM, ("unable to resize file </torch_", "to the right size"), "RuntimeError: unable to resize file </torch_991_3_1> to the right size: No space left on device (28)", confidence=0.98),
    Signature(Category.SHM, "unable to allocate shared memory(shm)", "RuntimeError: unable to allocate shared memory(shm) for file </torch_811_1873_3>: No space left on device (28)", confidence=0.985),
    Signature(Category.SHM, "Error while creating shared memory segment", "nvlink01:72:180 [1] misc/shmutils.cc:72 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-8Xb2cD (size 9637888)", confidence=0.95),
    Signature(Category.SHM, ("No space left on device", "/dev/shm"), "OSError: [Errno 28] No space left on device: '/dev/shm/sem.mp-k3j'", confidence=0.98),
    Signature(Category.SHM, ("/dev/shm", "No space left on device"), "cp: error writing '/dev/shm/train.bin': No space left on device", confidence=0.98),
    Signature(Category.FD_LIMIT, "received 0 items of ancdata", "RuntimeError: received 0 items of ancdata", confidence=0.98),
    Signature(Category.FD_LIMIT, "Too many open files", "OSError: [Errno 24] Too many open files: '/data/shard-00417.tar'", confidence=0.96),
    Signature(Category.FD_LIMIT, "can't start new thread", "RuntimeError: can't start new thread", confidence=0.85, variant="threads"),
    Signature(Category.FD_LIMIT, "Resource temporarily unavailable", "BlockingIOError: [Errno 11] Resource temporarily unavailable", confidence=0.75, loose=True, variant="threads"),
    Signature(Category.FD_LIMIT, "pthread_create failed", "OpenBLAS blas_thread_init: pthread_create failed for thread 31 of 64: Resource temporarily unavailable", confidence=0.8, variant="threads"),
)
