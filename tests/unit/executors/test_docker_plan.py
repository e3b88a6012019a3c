"""What an engine is asked for, from what a launch says."""

import os
import shutil
import subprocess

import pytest

from runyard.executors.base import ContainerLaunch, Launch, RankLaunch, ServiceLaunch, SliceLaunch
from runyard.executors.docker_plan import DockerOptions, Owner, PlanRefused, main_plan

OWNER = Owner("node-1", "/var/run/docker.sock", "/data")
FOLDER = "/data/attempts/job-a.1"


def launch(container=None, **changes):
    given = {
        "attempt_id": "job-a.1",
        "job_ref": "job-a",
        "tag": 7,
        "argv": ("python", "train.py"),
        "env": {"RUNYARD_ATTEMPT_ID": "job-a.1", "MINE": "x=y"},
        "cwd": "/workspace",
        "image": "trainer:1",
        "container": container or ContainerLaunch("trainer:1", workspace="/data/outputs/job-a"),
    }
    return Launch(**{**given, **changes})


def body(*args, options=DockerOptions(), **changes):  # noqa: B008
    return main_plan(launch(*args, **changes), OWNER, options)["body"]


def mounts(asked):
    return {m["Target"]: (m["Source"], m["ReadOnly"]) for m in asked["HostConfig"]["Mounts"]}


def test_the_command_opens_its_log_by_itself():
    asked = body()
    assert asked["Entrypoint"][:2] == ["/bin/sh", "-c"]
    assert asked["Entrypoint"][4:] == [f"{FOLDER}/out.log", f"{FOLDER}/main.pid", "7"]
    assert asked["Cmd"] == ["python", "train.py"]
    assert asked["WorkingDir"] == "/workspace"
    assert "MINE=x=y" in asked["Env"]
    assert asked["User"] == f"{os.getuid()}:{os.getgid()}"
    assert asked["Labels"]["runyard.attempt"] == "job-a.1"


def test_folders_have_the_same_path_inside():
    container = ContainerLaunch(
        "trainer:1",
        workspace="/data/outputs/job-a",
        writable=("/data/outputs/job-a", "/ckpt"),
        read_only=("/data/prefetch/job-a/files",),
    )
    seen = mounts(body(container, options=DockerOptions(mounts=("/corpora:ro", "/src:/code"))))
    assert seen["/workspace"] == ("/data/outputs/job-a", False)
    assert seen["/ckpt"] == ("/ckpt", False)
    assert seen[FOLDER] == (FOLDER, False)
    assert seen["/data/prefetch/job-a/files"] == ("/data/prefetch/job-a/files", True)
    assert seen["/corpora"] == ("/corpora", True)
    assert seen["/code"] == ("/src", False)
    # What it is judged by is not its to write.
    assert seen[f"{FOLDER}/journal"][1] is True


def test_what_a_fetched_link_leads_to_is_there_as_well(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "real").write_text("x")
    (tmp_path / "files" / "link").symlink_to(tmp_path / "real")
    container = ContainerLaunch("trainer:1", read_only=(str(tmp_path / "files"),))
    assert mounts(body(container))[str(tmp_path / "real")] == (str(tmp_path / "real"), True)


def test_the_checkpoint_it_resumes_from_is_its_own_to_replace():
    """R19, R34: nothing is mounted over it, where it is in a folder that it may write to."""
    own, other = "/data/outputs/job-a/checkpoints/step_3", "/elsewhere/step_3"
    container = ContainerLaunch(
        "trainer:1", workspace="/data/outputs/job-a", writable=("/ckpt",), read_only=(own, other)
    )
    seen = mounts(body(container))
    assert own not in seen
    assert seen[other] == (other, True)


def test_exactly_the_granted_gpus():
    """R34"""
    asked = body(gpu_uuids=("GPU-1", "GPU-2"))
    wanted = [{"DeviceIDs": ["GPU-1", "GPU-2"], "Capabilities": [["gpu"]]}]
    assert asked["HostConfig"]["DeviceRequests"] == wanted
    assert not [one for one in asked["Env"] if one.startswith("NVIDIA_VISIBLE_DEVICES")]


def test_no_gpu_whatever_the_image_asks_for():
    asked = body()
    assert "DeviceRequests" not in asked["HostConfig"]
    assert "NVIDIA_VISIBLE_DEVICES=void" in asked["Env"]


def test_limits():
    """R34"""
    host = body(ContainerLaunch("t", cpu_milli=500, memory_mb=64), pids_limit=99)["HostConfig"]
    assert host["NanoCpus"] == 500_000_000
    assert host["Memory"] == host["MemorySwap"] == host["ShmSize"] == 64 * 1024**2
    assert host["PidsLimit"] == 99
    more = body(ContainerLaunch("t", cpu_milli=10**6), options=DockerOptions(shm_mb=5))
    assert more["HostConfig"]["NanoCpus"] == os.cpu_count() * 10**9
    assert more["HostConfig"]["ShmSize"] == 5 * 1024**2
    assert "Memory" not in more["HostConfig"]


@pytest.mark.parametrize(
    ("network", "published"), [("bridge", True), ("mine", True), ("host", False), ("none", False)]
)
def test_ports_are_published_on_loopback(network, published):
    asked = body(ContainerLaunch("t", ports=(38000,)), options=DockerOptions(network=network))
    bound = asked["HostConfig"].get("PortBindings")
    wanted = {"38000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "38000"}]}
    assert bound == (wanted if published else None)
    assert asked["HostConfig"]["NetworkMode"] == network


@pytest.mark.parametrize("place", ["/", "/run", "/var/run", "/var/run/docker.sock"])
def test_the_engine_is_never_inside(place):
    with pytest.raises(PlanRefused, match="socket"):
        body(ContainerLaunch("t", writable=(place,)))
    with pytest.raises(PlanRefused, match="socket"):
        body(options=DockerOptions(mounts=(f"{place}:/x:ro",)))


def test_no_other_engine_is_inside_either():
    """R34: one that is not asked, or not started yet, has the machine too; one elsewhere has
    not."""
    options = DockerOptions(sockets=("/a/docker.sock",), other_sockets=("/b/podman/podman.sock",))
    for place in ("/a", "/b", "/b/podman"):
        with pytest.raises(PlanRefused, match="socket") as refused:
            body(ContainerLaunch("t", writable=(place,)), options=options)
        assert refused.value.filename == place
    elsewhere = DockerOptions(sockets=("tcp://somewhere:2375",))
    assert body(ContainerLaunch("t", writable=(os.getcwd(),)), options=elsewhere)


@pytest.mark.parametrize("shell", [("dash",), ("bash", "--posix"), ("busybox", "sh")])
def test_every_shell_takes_the_tag(shell, tmp_path):
    """R42: by it the server knows the job's processes, on a GPU and when it sweeps."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    tag = (1 << 61) - 1
    asked = body(tag=tag)["Entrypoint"]
    log, pid_file = tmp_path / "log", tmp_path / "pid"
    program = ["cat", "/proc/self/limits"]
    given = [asked[3], log, pid_file, asked[6]]
    subprocess.run([*shell, *asked[1:3], *given, *program], check=True, timeout=60)
    [told] = [line for line in log.read_text().splitlines() if line.startswith("Max file locks")]
    assert told.split()[3:5] == [str(tag)] * 2
    assert log.read_text().startswith("Limit")  # and nothing about the option it does not know
    assert int(pid_file.read_text())


def test_whom_it_runs_as():
    assert "User" not in body(options=DockerOptions(user="image"))
    plan = main_plan(launch(), OWNER, DockerOptions(user="1000:1000"))
    assert plan["body"]["User"] == "1000:1000"
    assert plan["open"] == ["/data/outputs/job-a"]  # whoever that is, they are its own


def test_services_need_the_network_of_the_machine():
    services = (ServiceLaunch("web", ("serve",), {}, 38000),)
    with pytest.raises(PlanRefused, match="docker_network"):
        body(services=services)
    assert body(services=services, options=DockerOptions(network="host"))


def test_a_slice_on_this_machine():
    part = SliceLaunch(0, "", ("torchrun", "train.py"), {"NODE_RANK": "0"}, ())
    asked = body(slices=(part,))
    assert asked["Cmd"] == ["torchrun", "train.py"]
    assert "NODE_RANK=0" in asked["Env"]
    ranks = tuple(RankLaunch(rank, rank, {"RANK": str(rank)}) for rank in range(2))
    with pytest.raises(PlanRefused, match="torchrun"):
        body(slices=(SliceLaunch(0, "", ("x",), {}, ranks),))
