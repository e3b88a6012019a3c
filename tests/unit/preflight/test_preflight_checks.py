"""The checks before a start, on real files, sockets and interpreters."""

import json
import os
import socket
import subprocess
import sys

import pytest

from runyard.preflight import checking, gpu_driver, place_checks, plan
from yards import free_port

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"}


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "work"
    made.mkdir()
    return made


def checked(folder, *argv, env=None, **fields):
    """Findings by what was checked; the worst one where a check found several."""
    wanted = plan.Plan(
        **{
            "argv": argv,
            "env": {**ENVIRONMENT, **(env or {})},
            "cwd": str(folder),
            "output_dir": str(folder / "out"),
            "checkpoint_dir": str(folder / "out" / "checkpoints"),
            "report_file": str(folder / "report.json"),
            **fields,
        }
    )
    report = checking.report(wanted)
    order = {"pass": 0, "warn": 1, "fail": 2}
    found = sorted(report["checks"], key=lambda one: order[one["verdict"]])
    return {one["check"]: one for one in found} | {"verdict": report["verdict"]}


def script(folder, text, name="train.py"):
    path = folder / name
    path.write_text(text)
    return path


def told(found, check):
    return found[check]["verdict"], found[check]["code"]


def test_a_good_script_passes(folder):
    script(folder, "import json, os\nfrom collections import abc\nprint('never')\n")
    found = checked(folder, sys.executable, "-u", "train.py", "--lr", "1")
    assert found["verdict"] == "pass", found
    assert found["interpreter"]["params"]["version"].startswith("3.11")
    assert found["script"]["params"]["path"] == str(folder / "train.py")


def test_nothing_of_the_job_is_executed(folder):
    script(folder, "open('ran', 'w')\nimport helper\n")
    script(folder, "open('ran', 'w')\n", "helper.py")
    assert checked(folder, sys.executable, "train.py")["verdict"] == "pass"
    assert not (folder / "ran").exists()


def test_a_missing_module_is_named_with_its_line(folder):
    script(folder, "import os\nimport no_such_module_here.part\n")
    found = checked(folder, sys.executable, "train.py")
    assert told(found, "imports") == ("fail", "module_missing")
    params = found["imports"]["params"]
    assert params["name"] == "no_such_module_here"
    assert (params["path"], params["line"]) == (str(folder / "train.py"), 2)


def test_a_missing_module_of_a_local_module(folder):
    script(folder, "import model\n")
    script(folder, "import no_such_module_here\n", "model.py")
    found = checked(folder, sys.executable, "train.py")
    assert told(found, "imports") == ("fail", "module_missing")
    assert found["imports"]["params"]["path"] == str(folder / "model.py")


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nsys.path.insert(0, '..')\nimport no_such_module_here\n",
        "import subprocess\nsubprocess.run(['pip', 'x'])\nimport no_such_module_here\n",
        "import paths\nimport no_such_module_here\n",
    ],
)
def test_code_that_changes_what_can_be_found_is_only_warned_of(folder, text):
    script(folder, "import sys\nsys.path.append('/somewhere')\n", "paths.py")
    script(folder, text)
    found = checked(folder, sys.executable, "train.py")
    assert told(found, "imports") == ("warn", "module_maybe_missing")
    assert found["verdict"] == "warn"


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import no_such_module_here\nexcept ImportError:\n    pass\n",
        "def later():\n    import no_such_module_here\n",
        "if False:\n    import no_such_module_here\n",
        "from . import no_such_module_here\n",
    ],
)
def test_imports_that_may_not_happen_are_not_looked_for(folder, text):
    script(folder, text)
    assert told(checked(folder, sys.executable, "train.py"), "imports") == ("pass", "ok")


def test_modules_on_the_path_of_the_job_are_found(folder):
    (folder / "lib").mkdir()
    (folder / "lib" / "own_module_of_test.py").write_text("")
    script(folder, "import own_module_of_test\n")
    found = checked(folder, sys.executable, "train.py", env={"PYTHONPATH": "lib"})
    assert told(found, "imports") == ("pass", "ok")
    found = checked(folder, sys.executable, "-E", "train.py", env={"PYTHONPATH": "lib"})
    assert told(found, "imports") == ("fail", "module_missing")
    found = checked(folder, "/bin/sh", "-c", f"PYTHONPATH=lib {sys.executable} train.py")
    assert told(found, "imports") == ("pass", "ok")


def test_a_syntax_error_is_shown_with_its_line(folder):
    script(folder, "import os\ndef broken(:\n    pass\n")
    found = checked(folder, sys.executable, "train.py")
    assert told(found, "script") == ("fail", "syntax_error")
    params = found["script"]["params"]
    assert (params["path"], params["line"]) == (str(folder / "train.py"), 2)
    assert params["text"] == "def broken(:"


def test_code_on_the_command_line(folder):
    assert checked(folder, sys.executable, "-c", "import os")["verdict"] == "pass"
    found = checked(folder, sys.executable, "-c", "import no_such_module_here")
    assert told(found, "imports") == ("fail", "module_missing")
    assert told(checked(folder, sys.executable, "-c", "a b"), "script") == ("fail", "syntax_error")


def test_a_module_that_is_run(folder):
    assert checked(folder, sys.executable, "-m", "json.tool")["verdict"] == "pass"
    found = checked(folder, sys.executable, "-m", "no_such_module_here.train")
    assert told(found, "imports") == ("fail", "module_missing")


def test_the_script_of_a_launcher(folder):
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("")
    found = checked(
        folder, sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "gone.py"
    )
    assert told(found, "script") == ("fail", "script_missing")


def test_a_program_with_a_python_line(folder):
    path = script(folder, f"#!{sys.executable} -u\nimport no_such_module_here\n", "tool")
    path.chmod(0o755)
    assert told(checked(folder, "./tool"), "imports") == ("fail", "module_missing")


def test_what_is_not_there(folder):
    found = checked(folder, sys.executable, "gone.py")
    assert told(found, "script") == ("fail", "script_missing")
    assert told(checked(folder, "no-such-program"), "command") == ("fail", "executable_missing")
    script(folder, "x", "plain.sh").chmod(0o644)
    assert told(checked(folder, "./plain.sh"), "command") == ("fail", "not_executable")


def test_an_interpreter_that_does_not_start(folder):
    broken = script(folder, "#!/bin/sh\necho lost my library >&2\nexit 127\n", "python3")
    broken.chmod(0o755)
    script(folder, "pass\n")
    found = checked(folder, str(broken), "train.py")
    assert told(found, "interpreter") == ("fail", "interpreter_broken")
    assert found["interpreter"]["params"]["said"] == "lost my library"
    assert found["interpreter"]["params"]["exit_code"] == 127


def test_an_interpreter_that_only_takes_long_is_no_failure(folder):
    slow = script(folder, "#!/bin/sh\nexec sleep 60\n", "python3")
    slow.chmod(0o755)
    script(folder, "pass\n")
    found = checked(folder, str(slow), "train.py", interpreter_timeout_s=0.3)
    assert told(found, "interpreter") == ("warn", "interpreter_slow")


def test_an_old_interpreter_that_cannot_answer_is_left_alone(folder):
    old = script(folder, '#!/bin/sh\n[ "$1" = -c ] && exit 0\nexit 1\n', "python2")
    old.chmod(0o755)
    script(folder, "print 'x'\n")
    assert checked(folder, str(old), "train.py")["verdict"] == "pass"


@pytest.mark.parametrize(
    "text",
    [
        "cd elsewhere && python gone.py",
        "ulimit -n 100",
        "exec true",
        "X=1 true",
        "$TOOL x",
        ". ./y",
    ],
)
def test_what_the_shell_understands_is_left_to_it(folder, text):
    assert checked(folder, "/bin/sh", "-c", text)["verdict"] == "pass"


def test_a_program_that_the_shell_would_not_find(folder):
    found = checked(folder, "/bin/sh", "-c", "no-such-program --x")
    assert told(found, "command") == ("fail", "executable_missing")


def test_working_directories(folder):
    gone = str(folder / "gone")
    found = checked(folder, "true", cwd=gone)
    assert told(found, "working_dir") == ("fail", "cwd_missing")
    assert "command" not in found
    file = str(script(folder, "x", "file"))
    assert told(checked(folder, "true", cwd=file), "working_dir") == ("fail", "cwd_unusable")
    made = checked(folder, "true", cwd=gone, output_dir=gone, checkpoint_dir=gone + "/c")
    assert made["verdict"] == "pass"
    assert not os.path.exists(gone)


def test_what_cannot_be_written(folder):
    file = script(folder, "x", "file")
    found = checked(folder, "true", output_dir=f"{file}/out")
    assert told(found, "output") == ("fail", "path_unwritable")
    found = checked(folder, "true", checkpoint_dir="/proc/here/checkpoints")
    assert told(found, "checkpoints") == ("fail", "path_unwritable")
    (folder / "out").mkdir()
    assert told(checked(folder, "true"), "output") == ("pass", "ok")
    assert os.listdir(folder / "out") == []


def test_the_disk_is_compared_with_the_last_checkpoint(folder, monkeypatch):
    saved = folder / "out" / "checkpoints"
    (saved / "checkpoint-5").mkdir(parents=True)
    with open(saved / "checkpoint-5" / "model.bin", "wb") as file:
        file.truncate(10 * 1024**4)  # holes: it takes no room
    assert place_checks.newest_checkpoint_bytes(str(saved)) == 10 * 1024**4
    found = checked(folder, "true")
    assert told(found, "disk") == ("fail", "disk_full")
    assert found["disk"]["params"]["needed_bytes"] == 20 * 1024**4
    os.unlink(saved / "checkpoint-5" / "model.bin")
    monkeypatch.setattr(place_checks, "LOW_BYTES", 1024**5)
    assert told(checked(folder, "true"), "disk") == ("warn", "disk_low")


def test_a_port_that_somebody_has(folder):
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        found = checked(folder, "true", ports={"reward": port})
        assert told(found, "ports") == ("warn", "port_in_use")
        assert found["ports"]["params"] == {"port": port, "service": "reward"}
    assert told(checked(folder, "true", ports={"reward": port}), "ports") == ("pass", "ok")


def test_shared_memory_matters_to_loader_processes_only(folder, monkeypatch):
    monkeypatch.setattr(place_checks, "SHARED_MEMORY_BYTES", 1024**5)
    assert "shared_memory" not in checked(folder, "true", "--num_workers", "0")
    for words in (
        ("--num_workers", "4"),
        ("--dataloader_num_workers=2",),
        ("data.num_workers=8",),
    ):
        found = checked(folder, "true", *words)
        assert told(found, "shared_memory") == ("warn", "shared_memory_small"), words


def torch_for(folder, built):
    (folder / "torch").mkdir(exist_ok=True)
    (folder / "torch" / "__init__.py").write_text("raise SystemExit('imported')")
    text = f"__version__ = '2.9'\ncuda: Optional[str] = {built!r}\nhip: Optional[str] = None\n"
    (folder / "torch" / "version.py").write_text(text)
    script(folder, "import torch\n")


@pytest.mark.parametrize(
    ("built", "code"), [(None, "torch_without_cuda"), ("13.0", "driver_too_old"), ("12.8", "ok")]
)
def test_torch_and_the_driver(folder, monkeypatch, built, code):
    version = script(folder, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  x\n", "v")
    monkeypatch.setattr(gpu_driver.fits, "__defaults__", (str(version),))
    monkeypatch.setattr(gpu_driver.present, "__defaults__", (str(version),))
    torch_for(folder, built)
    found = checked(folder, sys.executable, "train.py", wants_gpu=True)
    assert found["gpu_driver"]["code"] == code
    assert "gpu_driver" not in checked(folder, sys.executable, "train.py")


def test_a_machine_without_a_driver_is_told_of():
    assert [one.code for one in gpu_driver.present("/nonexistent")] in ([], ["no_gpu_driver"])


def test_a_token_for_the_hub_is_looked_for(folder):
    found = checked(folder, "true", fetches_from_hub=True)
    assert told(found, "hub_token") == ("pass", "no_hub_token")
    found = checked(folder, "true", fetches_from_hub=True, env={"HF_TOKEN": "x"})
    assert told(found, "hub_token") == ("pass", "ok")


def test_a_check_that_breaks_does_not_stop_the_job(folder, monkeypatch):
    def broken(_fixed):
        raise RuntimeError("ours")

    monkeypatch.setattr(place_checks, "ports", broken)
    assert told(checked(folder, "true"), "ports") == ("warn", "check_crashed")


def run_program(folder, **fields):
    wanted = plan.Plan(
        env=ENVIRONMENT,
        cwd=str(folder),
        output_dir=str(folder / "out"),
        checkpoint_dir=str(folder / "out" / "c"),
        report_file=str(folder / "report.json"),
        **fields,
    )
    plan.write(wanted, folder / "plan.json")
    assert os.stat(folder / "plan.json").st_mode & 0o077 == 0
    return subprocess.run(plan.command(folder / "plan.json"), capture_output=True, check=False)


def test_the_program_reads_a_plan_and_leaves_a_report(folder):
    assert run_program(folder, argv=("true",)).returncode == plan.PASSED
    assert plan.read_report(folder / "report.json")["verdict"] == "pass"
    assert run_program(folder, argv=("no-such-program",)).returncode == plan.FAILED
    report = json.loads((folder / "report.json").read_text())
    assert "executable_missing" in [one["code"] for one in report["checks"]]


def test_a_fault_of_the_program_lets_the_job_go_on(folder):
    (folder / "plan.json").write_text("{")
    done = subprocess.run(plan.command(folder / "plan.json"), capture_output=True, check=False)
    assert done.returncode == plan.PASSED
    assert b"BadPlan" in done.stderr
    assert plan.read_report(folder / "report.json") is None
