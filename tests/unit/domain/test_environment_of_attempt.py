"""The environment of an attempt: DESIGN section 11."""

from __future__ import annotations

import json

from runyard.domain.job import ArrayPlace, JobSpec
from runyard.domain.job_environment import Facts, build, variable_name

BASE = {"HOME": "/home/ann", "USER": "ann", "LANG": "C.UTF-8", "PATH": "/bin"}


def environment(*, spec=None, **facts):
    given = {
        "base": BASE,
        "spec": JobSpec("job", "true", **(spec or {})),
        "job_ref": "job-abc",
        "attempt_id": "job-abc.2",
        "attempt_number": 2,
        "run_dir": "/data/attempts/job-abc.2",
        "output_dir": "/out",
        "checkpoint_dir": "/out/checkpoints",
        "cpu_milli": 4000,
    }
    return build(Facts(**{**given, **facts}))


def test_everything_a_plain_job_gets():
    assert environment() == {
        **BASE,
        "RUNYARD_JOB_ID": "job-abc",
        "RUNYARD_ATTEMPT": "2",
        "RUNYARD_ATTEMPT_ID": "job-abc.2",
        "RUNYARD_RUN_DIR": "/data/attempts/job-abc.2",
        "RUNYARD_OUTPUT_DIR": "/out",
        "RUNYARD_CHECKPOINT_DIR": "/out/checkpoints",
        "RUNYARD_METRICS_FILE": "/data/attempts/job-abc.2/metrics.jsonl",
        "RUNYARD_STOP_FILE": "/data/attempts/job-abc.2/should_stop",
        "RUNYARD_BATCH_SCALE": "1",
        "RUNYARD_PARAMS": "{}",
        "CUDA_VISIBLE_DEVICES": "",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "OMP_NUM_THREADS": "4",
        "MKL_NUM_THREADS": "4",
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "TMPDIR": "/data/attempts/job-abc.2/tmp",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "/data/attempts/job-abc.2/nccl_trace_rank_",
    }


def test_only_known_names_come_from_the_cli():
    sent = {"PATH": "/venv/bin:/bin", "VIRTUAL_ENV": "/venv", "AWS_SECRET_ACCESS_KEY": "x"}
    found = environment(spec={"base_env": sent})
    assert (found["PATH"], found["VIRTUAL_ENV"]) == ("/venv/bin:/bin", "/venv")
    assert "AWS_SECRET_ACCESS_KEY" not in found


def test_a_person_may_change_comforts_but_not_what_must_be_true():
    own = {
        "PATH": "/mine",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "",
        "TMPDIR": "/scratch",
        "CUDA_VISIBLE_DEVICES": "0,1,2,3",
        "RUNYARD_JOB_ID": "job-other",
        "RUNYARD_RESUME_FROM": "/stale",
        "RUNYARD_URL": "http://127.0.0.1:8765",
    }
    found = environment(spec={"env_vars": own, "base_env": {"PATH": "/cli"}}, gpu_uuids=("GPU-1",))
    assert found["PATH"] == "/mine"
    assert found["OMP_NUM_THREADS"] == "1"
    assert found["PYTHONUNBUFFERED"] == ""
    assert found["TMPDIR"] == "/scratch"
    assert found["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert found["RUNYARD_JOB_ID"] == "job-abc"
    assert "RUNYARD_RESUME_FROM" not in found
    assert found["RUNYARD_URL"] == "http://127.0.0.1:8765"


def test_gpus_by_uuid():
    assert environment(gpu_uuids=("GPU-b", "GPU-a"))["CUDA_VISIBLE_DEVICES"] == "GPU-b,GPU-a"


def test_a_part_of_a_core_is_one_thread():
    assert environment(cpu_milli=250)["OMP_NUM_THREADS"] == "1"
    assert environment(cpu_milli=2500)["MKL_NUM_THREADS"] == "2"


def test_parameters():
    found = environment(params={"lr": 0.1, "model-name": "größe", "flag": True})
    assert json.loads(found["RUNYARD_PARAMS"]) == {"lr": 0.1, "model-name": "größe", "flag": True}
    assert found["RUNYARD_PARAM_LR"] == "0.1"
    assert found["RUNYARD_PARAM_MODEL_NAME"] == "größe"
    assert found["RUNYARD_PARAM_FLAG"] == "true"


def test_ports_by_number_and_by_name():
    found = environment(ports=(38000, 38001), spec={"port_names": ("tensorboard", "api")})
    assert found["RUNYARD_PORT_0"] == found["RUNYARD_PORT_TENSORBOARD"] == "38000"
    assert found["RUNYARD_PORT_1"] == found["RUNYARD_PORT_API"] == "38001"
    assert environment(ports=(38005,))["RUNYARD_PORT_0"] == "38005"


def test_services_that_the_client_runs():
    found = environment(spec={"service_urls": {"reward-model": "http://127.0.0.1:8001"}})
    assert found["RUNYARD_SERVICE_REWARD_MODEL_URL"] == "http://127.0.0.1:8001"
    assert found["RUNYARD_PORT_REWARD_MODEL"] == "8001"


def test_array_and_resume():
    found = environment(
        spec={"array": ArrayPlace("array-1", 7, 4)}, resume_from="/ckpt/9", batch_scale="0.5"
    )
    assert (found["RUNYARD_ARRAY_ID"], found["RUNYARD_ARRAY_INDEX"]) == ("array-1", "7")
    assert found["RUNYARD_RESUME_FROM"] == "/ckpt/9"
    assert found["RUNYARD_BATCH_SCALE"] == "0.5"


def test_variable_names():
    assert variable_name("my-port.2") == "MY_PORT_2"
    assert variable_name("_lr_") == "LR"
