"""Ranks that do not find, hear or wait for each other."""

from __future__ import annotations

import re

from runyard.domain.failures.categories import Category
from runyard.domain.failures.signature import Signature, cascade, teardown

_HANG, _NET, _MEET = Category.COMM_HANG, Category.COMM_NET, Category.RENDEZVOUS
FOLLOWS = 0.75  # often the echo of another rank's end: any surer root wins

# fmt: off
# One signature, one line, with its sample as long as it is: a table.
SIGNATURES = (
    Signature(_HANG, "Watchdog caught collective operation timeout", "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168, NumelOut=466119168, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.", confidence=FOLLOWS),
    Signature(_HANG, ("ProcessGroupNCCL's watchdog got stuck for", "seconds"), "[PG ID 0 PG GUID 0(default_pg) Rank 0] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.", confidence=FOLLOWS),
    Signature(_HANG, "Timed out waiting", "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete", confidence=FOLLOWS, pattern=re.compile(r"for (?:recv|send) operation")),
    Signature(Category.STALL, "DataLoader timed out after", "RuntimeError: DataLoader timed out after 300 seconds", confidence=0.9),
    Signature(_HANG, "monitoredBarrier", "RuntimeError: [Rank 0]: Ranks 2 failed to pass monitoredBarrier in 1800000 ms", confidence=0.78),
    Signature(_NET, "unhandled system error", "RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1331, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5", confidence=0.85),
    Signature(_NET, "ncclSystemError", "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.", confidence=0.8),
    Signature(_NET, "torch.distributed.DistNetworkError", "torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (10.0.0.7, 29500).", confidence=0.85),
    Signature(_NET, "NCCL WARN NET/IB : Got completion", "node3:771:1203 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.4<41233> with status=12 opcode=0 len=0 vendor err 129 (Recv)", confidence=0.9),
    Signature(_NET, "NCCL WARN Call to connect returned Connection", "node2:301:442 [1] NCCL WARN Call to connect returned Connection timed out, retrying", confidence=0.8),
    Signature(_NET, "Unable to find address for:", "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: eth7", confidence=0.9),
    Signature(_NET, "no socket interface found", "NCCL WARN Bootstrap : no socket interface found", confidence=0.85),
    Signature(_NET, ("gloo", "Connection reset by peer"), "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Read error [10.0.0.5]:52110: Connection reset by peer", confidence=0.72),
    Signature(_NET, ("gloo", "Connection closed by peer"), "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.5]:41207", confidence=0.72),
    Signature(_NET, "NCCL WARN Connect to", "gpu07:88:120 [0] NCCL WARN Connect to 10.0.0.9<49152> failed : No route to host", confidence=0.93),
    Signature(Category.PORT_IN_USE, "The server socket has failed to listen on any local network address", "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use", confidence=0.98),
    Signature(_NET, "socketStartConnect: Connect to", "socketStartConnect: Connect to 192.168.19.14<52822> failed : Software caused connection abort", confidence=0.95),
    Signature(Category.PORT_IN_USE, "Tried to launch distributed communication on port", "ConnectionError: Tried to launch distributed communication on port `29500`, but another process is utilizing it.", confidence=0.97),
    Signature(Category.PORT_IN_USE, "EADDRINUSE", "Error: listen EADDRINUSE: address already in use :::8080", confidence=0.97),
    Signature(Category.PORT_IN_USE, "Address already in use", "OSError: [Errno 98] Address already in use", confidence=0.96),
    Signature(Category.PORT_IN_USE, "address already in use", "[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use", confidence=0.96),
    Signature(Category.PORT_IN_USE, ("Port", "is already in use"), "OSError: Port 6006 is already in use by another program.", confidence=0.93, pattern=re.compile(r"Port \d{2,5} is")),
    Signature(_MEET, "The client socket has timed out after", "torch.distributed.DistStoreError: The client socket has timed out after 600000ms while trying to connect to (10.0.0.7, 29500).", confidence=0.88),
    Signature(_MEET, "has failed to send a keep-alive heartbeat to the rendezvous", "The node 'gpu02_811_0' has failed to send a keep-alive heartbeat to the rendezvous 'job7' due to an error of type RendezvousConnectionError.", confidence=0.8),
    Signature(_MEET, "RendezvousConnectionError", "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.", confidence=0.85),
    Signature(_MEET, "RendezvousClosedError", "torch.distributed.elastic.rendezvous.api.RendezvousClosedError", confidence=0.8),
    Signature(_MEET, "RendezvousTimeoutError", "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", confidence=0.88),
    Signature(_MEET, ("Timed out", "waiting for clients"), "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 3/4 clients joined.", confidence=0.88),
    Signature(_MEET, "store->get('0') got error", "RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer", confidence=0.78),
    Signature(_MEET, ("wait timeout after", "keys:"), "torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cpu//0", confidence=0.8),
    Signature(Category.CONFIG, "Duplicate GPU detected", "NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 41000", confidence=0.97),
    Signature(Category.CONFIG, "ncclInvalidUsage", "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.", confidence=0.82),
    Signature(Category.CONFIG, "ncclInvalidArgument", "ncclInvalidArgument: Invalid value for an argument.", confidence=0.82),
    Signature(Category.CONFIG, ("environment variable", "expected, but not set"), "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set", confidence=0.96),
    cascade("NCCL WARN Cuda failure", "gpu01:120:311 [2] NCCL WARN Cuda failure 'an illegal memory access was encountered'", 0.97),
    cascade("Some NCCL operations have failed or timed out.", "[Rank 0] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data."),
    cascade("To avoid data inconsistency, we are taking the entire process down", "[Rank 0] To avoid data inconsistency, we are taking the entire process down."),
    cascade("Exception (either an error or timeout) detected by watchdog", "[PG 1 Rank 0] Exception (either an error or timeout) detected by watchdog at work: 1580, last enqueued NCCL work: 1582, last completed NCCL work: 1579."),
    cascade("Process group watchdog thread terminated with exception", "[PG 3 Rank 0] Process group watchdog thread terminated with exception: [Rank 0] Watchdog caught collective operation timeout", 0.8),
    cascade("unhandled cuda error", "NCCL error in: ProcessGroupNCCL.cpp:2006, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5"),
    cascade("ncclUnhandledCudaError", "ncclUnhandledCudaError: Call to CUDA function failed."),
    cascade("ncclRemoteError", "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."),
    cascade("remote process exited or there was a network error", "NCCL error: remote process exited or there was a network error, NCCL version 2.19.3"),
    cascade("torch.distributed.DistBackendError", "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, remote process exited", 0.7),
    cascade("ChildFailedError", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "),
    cascade(("failed (exitcode:", "local_rank:"), "failed (exitcode: 1) local_rank: 2 (pid: 4711) of binary: /usr/bin/python3", 0.95),
    cascade("Root Cause (first observed failure):", "Root Cause (first observed failure):"),
    cascade("traceback : Signal", "traceback : Signal 9 (SIGKILL) received by PID 3344", 0.6),
    cascade(("exits with return code =",), "[ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python3', '-u', 'main.py', '--local_rank=1'] exits with return code = -9", 0.95),
    cascade(("exitcode  :",), "exitcode  : -9 (pid: 3309)", 0.95),
    cascade(("-- Process", "terminated with the following error:"), "-- Process 0 terminated with the following error:", 0.95),
    cascade(("died with <Signals.",), "subprocess.CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>.", 0.96),
    cascade("terminated with signal SIG", "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL", 0.97),
    cascade("torch.multiprocessing.spawn.ProcessRaisedException", "torch.multiprocessing.spawn.ProcessRaisedException: "),
    cascade(("subprocess.CalledProcessError", "returned non-zero exit status"), "subprocess.CalledProcessError: Command '['/usr/bin/python3', 'train.py']' returned non-zero exit status 1."),
    cascade("The actor died unexpectedly before finishing this task", "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task."),
    cascade("Worker exit type: SYSTEM_ERROR", "Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file."),
    cascade(("Caught", "in DataLoader worker process"), "RuntimeError: Caught KeyError in DataLoader worker process 0.", 0.99),
    cascade(("Caught", "in replica"), "RuntimeError: Caught RuntimeError in replica 1 on device 1.", 0.99),
    cascade("ray.exceptions.RayTaskError", "ray.exceptions.RayTaskError(ValueError): ray::train() (pid=4711, ip=10.0.0.3)", 0.6),
    cascade("A worker died or was killed while executing a task", "ray.exceptions.WorkerCrashedError: The worker died unexpectedly while executing this task. A worker died or was killed while executing a task by an unexpected system error."),
    cascade(("Connection reset by peer",), "ConnectionResetError: [Errno 104] Connection reset by peer", 0.55),
    cascade("BrokenPipeError: [Errno 32] Broken pipe", "BrokenPipeError: [Errno 32] Broken pipe"),
    teardown(("Sending process", "closing signal SIGTERM"), "Sending process 4712 closing signal SIGTERM"),
    teardown("destroy_process_group() was not called", "WARNING: destroy_process_group() was not called before program exit, which can leak resources."),
    teardown("resource_tracker: There appear to be", "resource_tracker: There appear to be 6 leaked semaphore objects to clean up at shutdown"),
    teardown("Stopping worker", "INFO:torch.distributed.elastic.agent.server.api:[default] Stopping worker group", 0.5),
    teardown("Killing subprocess", "[launch.py:316:sigkill_handler] Killing subprocess 4711", 0.6),
)
