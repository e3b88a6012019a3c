"""What ranks are told, and how torchrun is called for them."""

import pytest

from runyard.domain import distributed
from runyard.domain.distributed import Distributed, Meeting
from runyard.domain.job import Wanted
from runyard.domain.resources import Capacity, Gpu
from runyard.domain.scheduling import defaults

SHAPE = Distributed(nodes=2, procs_per_node=2, launcher="torchrun")
MEETING = Meeting("job-a.1", "10.0.0.7", 38001)
OPTIONS = (
    "--nnodes=2",
    "--nproc-per-node=2",
    "--node-rank=1",
    "--rdzv-backend=static",
    "--rdzv-endpoint=10.0.0.7:38001",
    "--rdzv-id=job-a.1",
    "--max-restarts=0",
    "--local-addr=10.0.0.8",
)
RUN = ("-m", "torch.distributed.run", *OPTIONS)


def torchrun(*argv):
    return distributed.torchrun_argv(argv, SHAPE, MEETING, 1, "10.0.0.8")


def test_ranks_of_several_nodes():
    """R30"""
    told = [
        distributed.rank_environment(SHAPE, MEETING, node, local)
        for node in range(2)
        for local in range(2)
    ]
    assert [one["RANK"] for one in told] == ["0", "1", "2", "3"]
    assert [one["LOCAL_RANK"] for one in told] == ["0", "1", "0", "1"]
    assert [one["NODE_RANK"] for one in told] == ["0", "0", "1", "1"]
    assert {one["WORLD_SIZE"] for one in told} == {"4"}
    assert {(one["MASTER_ADDR"], one["MASTER_PORT"]) for one in told} == {("10.0.0.7", "38001")}
    assert len({frozenset(one) for one in told}) == 1


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (("python", "t.py", "--x"), ("python", *RUN, "t.py", "--x")),
        (("/v/bin/python3.12", "-u", "t.py"), ("/v/bin/python3.12", "-u", *RUN, "t.py")),
        (("python", "-W", "ignore", "t.py"), ("python", "-W", "ignore", *RUN, "t.py")),
        (("python", "-Xdev", "-m", "a.b"), ("python", "-Xdev", *RUN, "-m", "a.b")),
        (("python", "-c", "1"), ("python", *RUN, "--no-python", "python", "-c", "1")),
        (("python",), ("python", *RUN, "--no-python", "python")),
        (("bash", "t.sh"), ("torchrun", *OPTIONS, "--no-python", "bash", "t.sh")),
        (("pythonic", "x"), ("torchrun", *OPTIONS, "--no-python", "pythonic", "x")),
    ],
)
def test_torchrun_before_a_list(argv, wanted):
    assert torchrun(*argv) == wanted


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("python t.py --lr $LR > log", "t.py --lr $LR > log"),
        ("  python t.py\n", "t.py"),
        ("python 'a;b.py' # x; y", "'a;b.py' # x; y"),
        ('python t.py --name "a && b"', 't.py --name "a && b"'),
        ("python -m a.b", "-m a.b"),
    ],
)
def test_torchrun_inside_a_shell(text, rest):
    """What the shell fills in stays its business."""
    assert torchrun("/bin/sh", "-c", text) == (
        "/bin/sh",
        "-c",
        " ".join(("python", *RUN, rest)),
    )


@pytest.mark.parametrize(
    "text",
    [
        "cd x && python t.py",
        "python a.py; python b.py",
        "python a.py\npython b.py",
        "python a.py | tee log",
        "(python a.py)",
        '"python" a.py',
        "python -c 'print(1)'",
        "LR=1 python a.py",
        "python 'a.py",
    ],
)
def test_what_only_a_shell_understands_runs_as_it_is(text):
    argv = ("/bin/sh", "-c", text)
    assert torchrun(*argv) == ("torchrun", *OPTIONS, "--no-python", *argv)


def test_metrics_files_and_logs():
    assert distributed.metrics_file("/a.b/metrics.jsonl", 0) == "/a.b/metrics.jsonl"
    assert distributed.metrics_file("/a.b/metrics.jsonl", 3) == "/a.b/metrics-rank-3.jsonl"
    assert [distributed.log_rank(SHAPE, rank) for rank in range(4)] == [0, 0, 2, 2]
    assert list(distributed.logged_ranks(SHAPE)) == [0, 2]
    assert list(distributed.logged_ranks(Distributed(2, 2))) == [0, 1, 2, 3]
    assert list(distributed.logged_ranks(None)) == [0]


def test_ports_of_the_first_node():
    granted = (38000, 38001, 38002)
    assert distributed.own_ports(granted) == (38000, 38001)
    assert distributed.meeting_port(granted) == 38002


def test_tokens_belong_to_one_attempt():
    tokens = {distributed.token("job-a.1", 7), distributed.token("job-a.2", 7)}
    assert len(tokens | {distributed.token("job-a.1", 8)}) == 3
    assert distributed.token("job-a.1", 7) in tokens


def test_a_command_that_begins_with_a_launcher():
    assert distributed.launched_by("torchrun t.py") == "torchrun"
    assert distributed.launched_by(("/v/bin/deepspeed", "t.py")) == "deepspeed"
    assert distributed.launched_by("python t.py torchrun") is None
    assert distributed.launched_by("") is None


@pytest.mark.parametrize(("gpus", "wanted"), [(0, None), (2, 2), (8, 4)])
def test_one_gpu_for_every_rank(gpus, wanted):
    capacity = Capacity(8000, 8000, tuple(Gpu(n, f"g{n}", "A", 1) for n in range(gpus)))
    shape = Distributed(procs_per_node=4)
    assert defaults.for_ranks(Wanted(), shape, capacity).gpu_count == wanted
    assert defaults.for_ranks(Wanted(gpu_count=1), shape, capacity).gpu_count == 1
    assert defaults.for_ranks(Wanted(), None, capacity).gpu_count is None
