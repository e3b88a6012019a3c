"""From evidence to a diagnosis: whose word counts, which line is the root, and what is kept."""

from __future__ import annotations

import errno
import json

import pytest

from runyard.domain.failures.categories import Category, FailureType
from runyard.domain.failures.classify import classify
from runyard.domain.failures.diagnosis import NO_LINE, as_mapping, from_mapping
from runyard.domain.failures.evidence import (
    Evidence,
    GpuFact,
    HostFacts,
    LastMetrics,
    LogLine,
    RankLog,
    lines_of,
)
from runyard.domain.recovery import policy

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 30.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.21 GiB is free."


def ended(log="", code=1, **more):
    return Evidence(exit_code=code, logs=(RankLog(tail=lines_of(log)),), **more)


def of(log="", code=1, **more):
    found = classify(ended(log, code, **more))
    assert found is not None
    return found


def traceback(exception, source="loss.backward()"):
    return f'Traceback (most recent call last):\n  File "train.py", line 10, in <module>\n    {source}\n{exception}'


# whose word counts


def test_the_kernel_counter_beats_every_line():
    """R18"""
    found = of(traceback("KeyError: 'x'"), code=None, signal=9, cause="oom", oom_kills=1)
    assert (found.category, found.confidence) == (Category.HOST_OOM, 1.0)
    assert found.failure_type is FailureType.OUT_OF_MEMORY
    assert found.explanation.code == "host_oom_confirmed"


def test_a_kill_from_outside_is_not_memory():
    """R18"""
    found = of("step 5 loss 0.3\nKilled", code=None, signal=9, cause="killed_externally")
    assert found.category is Category.UNKNOWN_KILL
    assert found.failure_type is FailureType.KILLED_EXTERNALLY


@pytest.mark.parametrize(
    ("cause", "detail", "category", "code"),
    [
        ("cwd_missing", {"path": "/gone"}, Category.PATH, "cwd_missing"),
        ("exec_failed", {"errno": errno.ENOENT, "path": "x"}, Category.CONFIG, "exec_failed"),
        ("start_failed", {"errno": errno.ENOSPC}, Category.DISK_FULL, "disk_full"),
        ("start_failed", {"errno": errno.EACCES}, Category.PATH, "start_failed"),
        ("isolation_unavailable", {}, Category.ENV, "isolation_unavailable"),
        ("gpu_runtime_missing", {}, Category.ENV, "gpu_runtime_missing"),
        ("start_failed", {"step": "container"}, Category.UNKNOWN, "container_failed"),
        ("host_restarted", {}, Category.SERVER_RESTART, "host_restarted"),
        ("supervisor_lost", {}, Category.SERVER_RESTART, "supervisor_lost"),
        ("never_started", {}, Category.SERVER_RESTART, "never_started"),
        ("service_failed", {"code": "not_ready"}, Category.SERVICE, "service_failed"),
        ("service_failed", {"code": "port_in_use"}, Category.PORT_IN_USE, "service_failed"),
        ("oom_soft", {"used_mb": 9, "limit_mb": 8}, Category.HOST_OOM, "host_oom_above_limit"),
        ("timeout", {"limit_s": 60}, Category.TIMEOUT, "timeout"),
    ],
)
def test_what_our_own_records_know(cause, detail, category, code):
    found = of("", code=None, cause=cause, detail=detail)
    assert (found.category, found.explanation.code) == (category, code)


@pytest.mark.parametrize(
    ("code", "signal", "category"),
    [
        (1, None, Category.UNKNOWN),
        (2, None, Category.CONFIG),
        (126, None, Category.CONFIG),
        (127, None, Category.CONFIG),
        (93, None, Category.EXTERNAL_STOP),
        (129, None, Category.UNKNOWN_KILL),
        (130, None, Category.EXTERNAL_STOP),
        (132, None, Category.ENV),
        (134, None, Category.CRASH),
        (135, None, Category.SHM),
        (136, None, Category.CODE),
        (137, None, Category.UNKNOWN_KILL),
        (139, None, Category.SEGFAULT),
        (143, None, Category.UNKNOWN_KILL),
        (152, None, Category.RLIMIT),
        (-11, None, Category.SEGFAULT),
        (None, 11, Category.SEGFAULT),
        (None, 6, Category.CRASH),
        (None, None, Category.UNKNOWN),
    ],
)
def test_exit_codes_and_signals_without_a_line(code, signal, category):
    assert of("training", code, signal=signal).category is category


def test_nothing_went_wrong():
    assert classify(ended("epoch 1 loss 0.2\ndone", code=0)) is None
    assert classify(ended(OOM, code=0)) is None  # survived, whatever was said on the way


def test_a_good_exit_code_with_a_loss_that_is_no_number():
    said = of("Batch 301: Invalid loss, terminating training", code=0)
    assert (said.category, said.facts["bad_step"]) == (Category.NAN, 301)
    metrics = LastMetrics(step=900, loss_finite=False, first_bad_step=310)
    measured = of("done", code=0, metrics=metrics)
    assert (measured.category, measured.facts["bad_step"]) == (Category.NAN, 310)


def test_a_stall_is_what_hung_it():
    assert of("step 4", None, stop_cause="stall", cause="cancelled").category is Category.STALL
    many = of("step 4", None, stop_cause="stall", cause="cancelled", world_size=4)
    assert many.category is Category.COMM_HANG
    hung = of(f"[rank2]: {OOM}", None, stop_cause="stall", cause="cancelled", world_size=4)
    assert (hung.category, hung.root.rank) == (Category.GPU_OOM, 2)


def test_what_a_program_says_while_we_end_it_is_no_cause():
    found = of(traceback("KeyError: 1"), None, cause="timeout", detail={"limit_s": 5})
    assert found.category is Category.TIMEOUT
    rule = of("KeyboardInterrupt", None, cause="cancelled", stop_cause="rule", rule="slow")
    assert (rule.category, rule.facts["rule"]) == (Category.RULE, "slow")
    metrics = LastMetrics(step=5, loss_finite=False, first_bad_step=3)
    nan = of("", None, cause="cancelled", stop_cause="rule", rule="nan", metrics=metrics)
    assert nan.category is Category.NAN


# which line is the root


def test_the_source_lines_of_a_traceback_are_not_read():
    source = 'raise ValueError("CUDA out of memory. Tried to allocate")'
    assert of(traceback("TypeError: bad operand", source)).category is Category.CODE


def test_the_first_clear_exception_of_a_chain():
    chain = (
        traceback("socket.gaierror: [Errno -3] Temporary failure in name resolution")
        + "\n\nThe above exception was the direct cause of the following exception:\n\n"
        + traceback("urllib3.exceptions.NewConnectionError: failed")
        + "\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + traceback("OSError: We couldn't connect to 'https://huggingface.co' to load the files")
    )
    found = of(chain)
    assert found.category is Category.NETWORK
    assert "gaierror" in found.root.text
    assert found.root.number == 4


def test_a_clear_cause_behind_a_vague_one():
    chain = (
        traceback("KeyError: 'flash'")
        + "\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + traceback("ModuleNotFoundError: No module named 'flash_attn'")
    )
    found = of(chain)
    assert (found.category, found.facts["module"]) == (Category.IMPORT, "flash_attn")


def test_the_exception_inside_a_loader_worker():
    log = (
        traceback("RuntimeError: Caught FileNotFoundError in DataLoader worker process 0.")
        + "\nOriginal "
        + traceback("FileNotFoundError: [Errno 2] No such file or directory: '/data/7.png'")
    )
    found = of(log)
    assert (found.category, found.facts["path"]) == (Category.PATH, "/data/7.png")
    assert [line.kind for line in found.cascade] == ["cascade"]


def test_an_error_that_training_survived_is_not_the_root():
    log = "\n".join(
        [
            traceback("ConnectionError: HTTPSConnectionPool: Max retries exceeded with url: /x"),
            *(f"Epoch {n}/9 - loss: 0.{n}" for n in range(1, 6)),
            traceback("ZeroDivisionError: division by zero"),
        ]
    )
    found = of(log)
    assert found.category is Category.CODE
    assert "ZeroDivision" in found.root.text


def test_a_loss_that_came_back_is_no_divergence():
    lines = [
        "{'loss': nan, 'epoch': 0.1}",
        "{'loss': 0.5, 'epoch': 0.2}",
        traceback("KeyError: 1"),
    ]
    assert of("\n".join(lines)).category is Category.CODE
    lines = [
        "{'loss': 0.5, 'epoch': 0.1}",
        "{'loss': nan, 'epoch': 0.2}",
        traceback("KeyError: 1"),
    ]
    found = of("\n".join(lines))
    assert found.category is Category.NAN


def test_the_earliest_root_across_ranks_wins():
    """R18"""
    watchdog = "[rank{0}]:[E626 06:34:44.9 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600020 milliseconds"
    log = "\n".join(
        [
            watchdog.format(0),
            watchdog.format(1),
            f"[rank3]: {OOM}",
            watchdog.format(2),
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        ]
    )
    found = of(log)
    assert (found.category, found.root.rank, found.root.number) == (Category.GPU_OOM, 3, 3)
    assert len(found.cascade) == 4


@pytest.mark.parametrize("known", ["at", "ended_at", "stamp", "launcher"])
def test_ranks_with_logs_of_their_own(known):
    first, later = "KeyError: 'x'", "ValueError: bad"
    stamps = {0: "2026-03-01 10:00:09,000 ERROR ", 1: "2026-03-01 10:00:01,000 ERROR "}
    logs = []
    for rank, text in ((0, later), (1, first)):
        at = 100.0 - rank if known == "at" else None
        body = (stamps[rank] if known == "stamp" else "") + text
        lines = (LogLine(1, body, at),)
        if known == "launcher":
            lines += (LogLine(2, "failed (exitcode: 1) local_rank: 1 (pid: 3) of binary: p"),)
        logs.append(
            RankLog(rank, tail=lines, ended_at=50.0 - rank if known == "ended_at" else None)
        )
    found = classify(Evidence(exit_code=1, logs=tuple(logs), world_size=2))
    assert found.root.rank == 1


def test_warnings_in_passing_are_no_roots():
    log = "\n".join(
        [
            "2026-03-01 10:00:00.1: W tensorflow/stream_executor/dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open shared object file: No such file or directory",
            "WARNING:urllib3: Retrying (Retry(total=2)) after connection broken by 'ConnectTimeoutError': Connection refused",
            "cat: /etc/nothing: No such file or directory",
            traceback(
                "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 7.79 GiB total capacity; 5.1 GiB already allocated)"
            ),
        ]
    )
    assert of(log).category is Category.GPU_OOM


def test_a_traceback_behind_a_progress_bar():
    log = "  5%|▌         | 5/100 [00:01<00:20,  4.9it/s]" + traceback(OOM)
    assert of(log).category is Category.GPU_OOM


def test_an_exception_nobody_knows():
    found = of(traceback("mylib.errors.StrangeFault: the frobnicator is gone"))
    assert (found.category, found.explanation.code) == (Category.UNKNOWN, "uncaught_exception")
    assert "frobnicator" in found.root.text


def test_first_errors_and_tail_are_read_together():
    first = (LogLine(7, OOM),)
    tail = lines_of("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", 90000)
    found = classify(Evidence(exit_code=1, logs=(RankLog(0, first, tail),)))
    assert (found.category, found.root.number) == (Category.GPU_OOM, 7)


# what is known of it


def test_memory_held_by_somebody_else():
    line = (
        OOM + " Process 4242 has 70.10 GiB memory in use. Process 17 has 100.00 MiB memory in use."
    )
    found = of(line, own_pids=frozenset({17}))
    assert found.explanation.code == "gpu_oom_foreign"
    assert found.facts["foreign_bytes"] == int(70.1 * 2**30)
    assert (found.facts["gpu"], found.facts["tried_bytes"]) == (0, 30 << 30)
    ours = of(line, own_pids=frozenset({17, 4242}))
    assert ours.explanation.code == "gpu_oom"
    assert of(line, world_size=8).explanation.code == "gpu_oom"
    gpus = (GpuFact(0, "GPU-a", 80000, 79000, foreign_mb=60000),)
    assert of("CUDA error: out of memory", host=HostFacts(gpus=gpus)).facts["foreign_bytes"]


def test_hardware_behind_a_fault():
    gpus = (GpuFact(0, "GPU-a"), GpuFact(3, "GPU-b", xids=(45, 79)))
    found = of("RuntimeError: CUDA error: unspecified launch failure", host=HostFacts(gpus=gpus))
    assert (found.category, found.facts["xid"]) == (Category.GPU_HW, 79)
    assert found.facts["gpu_uuids"] == ["GPU-b"]
    assert found.failure_type is FailureType.CUDA_ERROR


def test_the_kernel_log_is_heard():
    host = HostFacts(kernel_lines=("NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.",))
    assert of("step 7", host=host).category is Category.GPU_HW


def test_no_bytes_left():
    host = HostFacts(disk_free_bytes=4096, disk_path="/out")
    found = of("OSError: [Errno 28] No space left on device", host=host)
    assert (found.facts["free_bytes"], found.facts["path"]) == (4096, "/out")


def test_a_loss_that_is_no_number_explains_a_vague_end():
    metrics = LastMetrics(step=320, loss_finite=False, first_bad_step=300)
    found = of(traceback("ValueError: cannot convert float NaN to integer"), metrics=metrics)
    assert (found.category, found.facts["bad_step"]) == (Category.NAN, 300)
    sure = of(traceback("ModuleNotFoundError: No module named 'x'"), metrics=metrics)
    assert sure.category is Category.IMPORT


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (OOM, OOM.replace("30.00", "15.25").replace("1.21", "0.4"), True),
        ("KeyError: 'a'", "KeyError: 'b'", False),
        (
            "OSError: [Errno 5] Input/output error: '/mnt/a/1/x_0001.tar'",
            "OSError: [Errno 5] Input/output error: '/mnt/b/9/x_0417.tar'",
            True,
        ),
        ("RuntimeError: bad handle 0x7f3a", "RuntimeError: bad handle 0x11bc", True),
        ("[rank1]: KeyError: 'a'", "[rank2]: KeyError: 'a'", True),
    ],
)
def test_fingerprints(one, other, same):
    assert (of(one).fingerprint == of(other).fingerprint) is same


def test_no_line_no_proof_that_it_is_the_same():
    assert of("step 3").fingerprint.startswith(NO_LINE)
    assert not of(traceback("RuntimeError: odd")).fingerprint.startswith(NO_LINE)


def test_it_survives_being_kept():
    found = of(f"{OOM}\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError:")
    kept = json.loads(json.dumps(as_mapping(found)))
    assert kept["failure_type"] == "out_of_memory"
    assert as_mapping(from_mapping(kept)) == kept


def test_a_limit_of_a_drill_counts_as_a_full_disk_and_any_other_does_not():
    """R18: a limit that somebody set outside is hit again by the same program."""
    said = traceback("OSError: [Errno 27] File too large", "file.write(data)")
    assert of(said).category is Category.CODE
    assert of("", code=None, signal=25, cause="killed_externally").category is Category.RLIMIT
    found = of(said, files_limited=True)
    assert (found.category, found.root.text) == (Category.DISK_FULL, said.splitlines()[-1])
    killed = of("", code=None, signal=25, cause="killed_externally", files_limited=True)
    assert killed.category is Category.DISK_FULL
    assert of(traceback("KeyError: 'x'"), files_limited=True).category is Category.CODE


def test_a_device_side_assert_is_the_programs_fault_with_the_xid_of_its_driver_too():
    """R18: as an H200 and torch 2.11 tell it; Xid 43 is what the driver calls a program's fault."""
    said = """/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:111: operator(): block: [0,0,0], thread: [1,0,0] Assertion `-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.
Traceback (most recent call last):
  File "wrong.py", line 4, in <module>
    print(table[index].sum().item(), flush=True)
          ^^^^^^^^^^^^^^^^^^
torch.AcceleratorError: CUDA error: device-side assert triggered
Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""
    gpu = GpuFact(0, "GPU-a", xids=(43,))
    kernel = ("NVRM: Xid (PCI:0000:00:06): 43, pid=414, name=python3, channel 0x0000000a",)
    found = of(said, host=HostFacts(gpus=(gpu,), kernel_lines=kernel))
    assert (found.category, found.failure_type) == (Category.CODE_DATA, FailureType.DATA)
    assert found.root.number == 6
    assert policy.ROWS[found.category].strategy is policy.Strategy.GIVE_UP
