"""A job as it is asked for: what is accepted, what it becomes, what is refused and how."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.domain import errors
from runyard.domain.checkpoints.spec import CheckpointSpec
from runyard.domain.job import ArrayPlace, LeaseTerms, Priority, Service
from runyard.wire import requests
from runyard.wire.jobs import FIELDS, KEPT_FIELDS, JobSubmission, read_job

DESIGN_FIELDS = [
    "name",
    "description",
    "job_type",
    "command",
    "working_dir",
    "env_vars",
    "image",
    "executor",
    "cpu_cores",
    "memory_gb",
    "gpu_count",
    "gpu_type",
    "ports",
    "priority",
    "max_retries",
    "depends_on",
    "labels",
    "customer_id",
    "workspace_id",
    "dataset_ids",
    "prefetch",
    "output_path",
    "params",
    "checkpoint",
    "timeout_s",
    "grace_s",
    "lease_s",
    "on_lease_lost",
    "services",
    "distributed",
    "notify",
    "recovery",
    "tty",
    "isolation",
]


def submission(**fields):
    return read_job({"command": "true", **fields}).to_submission()


def refused(**fields):
    with pytest.raises(errors.InvalidJob) as caught:
        read_job({"command": "true", **fields})
    return [(one["field"], one["code"]) for one in caught.value.params["fields"]]


def test_every_field_of_the_job_file_is_known():
    assert set(DESIGN_FIELDS) <= set(FIELDS)


def test_only_the_command_is_needed():
    """Defaults are left to the engine, which knows the machine."""
    made = submission()
    assert made.spec.command == "true"
    assert made.spec.name == "true"
    assert made.priority is Priority.MEDIUM
    assert made.wanted.cpu_cores is None
    assert made.max_retries is None
    assert made.grace_s is None


def test_null_is_the_same_as_left_out():
    assert submission(**{name: None for name in FIELDS if name != "command"}) == submission()


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py\n  --lr 1", "python train.py --lr 1"),
        (["python", "x.py"], "python x.py"),
        ("x" * 100, "x" * 59 + "…"),
        ("\x01\x02;", ";"),
    ],
)
def test_the_name_comes_from_the_command(command, name):
    assert read_job({"command": command}).to_submission().spec.name == name


def test_a_list_may_hold_numbers_as_yaml_gives_them():
    made = read_job({"command": ["python", "x.py", "--epochs", 10, 0.5]}).to_submission()
    assert made.spec.command == ("python", "x.py", "--epochs", "10", "0.5")
    with pytest.raises(errors.InvalidJob, match="quotes"):
        read_job({"command": [True]})


def test_params_stay_as_they_were_given():
    params = {"lr": "1e-4", "layers": [1, {"a": None}], "on": True}
    assert submission(params=params).spec.params == params
    assert refused(params={"a-b": 1}) == [("params", "bad_name")]
    assert refused(params={"resume_from": 1}) == [("params", "reserved_name")]
    assert refused(params={"lr": 1, "LR": 2}) == [("params", "duplicate")]
    assert refused(params={"x": ["deep", {"y": "\0"}]}) == [("params", "nul_character")]
    assert refused(params=[1]) == [("params", "wrong_type")]


def test_variables_become_text():
    env = {"A": 1, "B": 0.0001, "C": True, "D": "x", "E": ""}
    assert submission(env_vars=env).spec.env_vars == {
        "A": "1",
        "B": "0.0001",
        "C": "true",
        "D": "x",
        "E": "",
    }
    assert submission(env_vars=["A=1", "B=x=y"]).spec.env_vars == {"A": "1", "B": "x=y"}
    for wrong in ({"1A": "x"}, {"": "x"}, {"A=B": "x"}):
        assert refused(env_vars=wrong) == [("env_vars", "bad_name")]
    assert refused(env_vars={"A": None}) == [("env_vars", "wrong_type")]
    assert refused(env_vars={"A": "x\0"}) == [("env_vars", "nul_character")]
    assert refused(env_vars="A=1") == [("env_vars", "wrong_type")]


def test_the_base_environment_holds_four_names():
    base = {"PATH": "/bin", "VIRTUAL_ENV": "/v", "CONDA_PREFIX": "/c", "LD_LIBRARY_PATH": "/l"}
    assert submission(base_env=base).spec.base_env == base
    assert refused(base_env={"LD_PRELOAD": "/evil.so"}) == [("base_env", "bad_name")]


def test_what_the_kernel_would_refuse_is_refused_here():
    long = "x" * 131_072
    assert refused(command=long) == [("command", "too_long")]
    assert refused(command=["echo", long]) == [("command", "too_long")]
    assert refused(command="é" * 70_000) == [("command", "too_long")]
    assert refused(env_vars={"A": long}) == [("env_vars", "too_long")]
    assert submission(command="x" * 131_071).spec.command


@pytest.mark.parametrize(
    ("ports", "count", "names"),
    [(0, 0, ()), (2, 2, ()), (["tensorboard", "api"], 2, ("tensorboard", "api")), ([], 0, ())],
)
def test_ports(ports, count, names):
    made = submission(ports=ports)
    assert (made.wanted.port_count, made.spec.port_names) == (count, names)


@pytest.mark.parametrize(
    ("ports", "code"),
    [
        (["a", "A"], "duplicate"),
        (["a-b", "a_b"], "duplicate"),
        (["0"], "bad_name"),
        ([""], "bad_name"),
        (True, "wrong_type"),
        ("2", "wrong_type"),
        (2000, "out_of_range"),
    ],
)
def test_wrong_ports(ports, code):
    assert refused(ports=ports) == [("ports", code)]


def test_dependencies_in_every_form():
    made = submission(depends_on=["job-abc", 7, {"job": "job-x", "on": "end"}, {"job": 8}, 7])
    assert made.depends_on == (
        ("job-abc", "success"),
        ("7", "success"),
        ("job-x", "end"),
        ("8", "success"),
    )
    assert submission(depends_on="job-abc").depends_on == (("job-abc", "success"),)
    assert refused(depends_on=[{"job": 1, "on": "start"}]) == [("depends_on", "bad_value")]
    assert refused(depends_on=[True]) == [("depends_on", "wrong_type")]
    assert refused(depends_on=[1.5]) == [("depends_on", "wrong_type")]
    for ref in ("", "x", "JOB-A", "1" * 30, -1):
        with pytest.raises(errors.UnknownDependency):
            read_job({"command": "x", "depends_on": [ref]})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, 10**9, "x", [], True])
@pytest.mark.parametrize("name", ["cpu_cores", "memory_gb", "gpu_count"])
def test_absurd_resources(name, value):
    ((field, code),) = refused(**{name: value})
    assert field == name
    assert code in ("out_of_range", "wrong_type")


def test_shares_of_a_gpu():
    for count in (0, 0.001, 0.25, 1, 2, 8.0, "4"):
        assert submission(gpu_count=count).wanted.gpu_count == float(count)
    assert refused(gpu_count=1.5) == [("gpu_count", "not_whole")]
    assert refused(gpu_count=0.0001) == [("gpu_count", "out_of_range")]


def test_words_may_be_written_in_capitals():
    made = read_job(
        {"command": "x", "priority": "HIGH", "executor": "Local", "job_type": "Single"}
    )
    assert made.to_submission().priority is Priority.HIGH


def test_an_image_and_an_array_and_labels():
    made = submission(
        image="a/b:1", array={"array_id": "a", "index": 2}, labels={"team": "x", "n": 3}
    )
    assert made.spec.array == ArrayPlace("a", 2, 0)
    assert made.spec.labels == {"team": "x", "n": "3"}
    assert refused(labels={"": "x"}) == [("labels", "bad_name")]
    assert refused(labels={"a": "x\ny"}) == [("labels", "bad_value")]
    assert refused(array={"array_id": "a"}) == [("array.index", "missing")]
    assert refused(image="x", executor="local") == [("executor", "image_needs_container")]


def test_fields_that_are_kept_as_they_were_sent():
    asked = {"recovery": {"gpu_oom": {"max_attempts": 2}}}
    made = read_job({"command": "x", **asked})
    assert made.to_submission().spec.extra == asked
    assert set(asked) == set(KEPT_FIELDS)
    assert made.warnings() == []


def test_what_a_job_says_about_its_recovery():
    """R20: by failure type, category or default; unknown names are refused with a near one."""
    asked = {
        "out_of_memory": {"strategy": "reduce_batch_size", "retries": 2, "delays": [0, 5]},
        "network": "never",
        "default": {"strategy": "never"},
    }
    assert submission(recovery=asked).spec.extra["recovery"] == {
        "out_of_memory": {"strategy": "reduce_batch_size", "max_attempts": 2, "delays": [0, 5]},
        "network": "give_up",
        "default": {"strategy": "give_up"},
    }
    assert refused(recovery={"gpu_oon": "never"}) == [("recovery", "unknown_failure")]
    assert refused(recovery={"nan": "sometimes"}) == [("recovery", "bad_value")]
    assert refused(recovery={"nan": {"retrys": 1}}) == [("recovery", "unknown_field")]
    assert refused(recovery={"nan": {"delays": [-1]}}) == [("recovery", "bad_value")]
    assert refused(recovery=[]) == [("recovery", "wrong_type")]


def test_what_a_job_says_about_its_checkpoints():
    asked = {"dir": "ckpt", "pattern": "m_*.pt", "every": 100, "keep": 3, "resume": "Never"}
    made = submission(checkpoint=asked).spec.checkpoint
    assert made == CheckpointSpec("ckpt", "m_*.pt", 100, 3, "never")
    assert submission(checkpoint={}).spec.checkpoint == CheckpointSpec()
    assert submission().spec.checkpoint is None
    assert refused(checkpoint={"dir": "\0"}) == [("checkpoint.dir", "nul_character")]
    assert refused(checkpoint={"keep": 0}) == [("checkpoint.keep", "out_of_range")]
    assert refused(checkpoint={"pattern": "/a"}) == [("checkpoint.pattern", "bad_value")]
    assert refused(checkpoint={"resume": "maybe"}) == [("checkpoint.resume", "bad_value")]


def test_services_lease_prefetch_terminal_and_isolation():
    made = submission(
        services=[{"name": "reward", "command": ["serve"], "health": "/ok", "port": "auto"}],
        lease_s=60,
        on_lease_lost="keep",
        prefetch=["hf://org/model"],
        tty=True,
        isolation="strict",
    )
    assert made.spec.services == (Service("reward", ("serve",), health="/ok"),)
    assert made.spec.lease == LeaseTerms(60, "keep")
    assert made.spec.prefetch == ("hf://org/model",)
    assert made.spec.tty
    assert made.spec.isolation == "strict"
    assert refused(services="x")
    assert refused(services=[{"name": "a b", "command": "x"}]) == [
        ("services[0].name", "bad_name")
    ]
    assert refused(prefetch=[1]) == [("prefetch", "wrong_type")]
    assert refused(prefetch=["ftp://host/file"]) == [("prefetch", "bad_uri")]
    same_name = ["https://one/a.bin", "https://two/a.bin"]
    assert refused(prefetch=same_name) == [("prefetch", "duplicate")]
    assert submission(prefetch=[same_name[0], same_name[1] + "#b.bin"])
    assert refused(on_lease_lost="panic") == [("on_lease_lost", "bad_value")]
    assert refused(isolation="total") == [("isolation", "bad_value")]


def test_a_service_that_the_client_runs_is_named_by_its_address():
    made = submission(
        services=[{"name": "db", "command": "x"}, {"name": "reward", "url": "http://[::1]:80/"}]
    )
    assert [one.name for one in made.spec.services] == ["db"]
    assert made.spec.service_urls == {"reward": "http://[::1]:80"}


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:80",
        "http://h",
        "ftp://h:1",
        "http://h:0",
        "http://h:65536",
        "http://a@h:1",
        "http://h:1/path",
        "http://h h:1",
        "http://h:1\n",
        "http://-:1",
        "http://[x]:1",
    ],
)
def test_addresses_that_no_service_can_have(url):
    if url.endswith("\n"):
        url = f"{url}x"
    found = refused(services=[{"name": "reward", "url": url}])
    assert [place for place, _ in found] == ["services[0].url"]


def test_a_service_has_a_command_or_an_address():
    assert refused(services=[{"name": "a"}]) == [("services[0]", "no_command")]
    both = {"name": "a", "command": "x", "url": "http://127.0.0.1:1"}
    assert refused(services=[both]) == [("services[0]", "bad_value")]
    health = {"name": "a", "health": "/ok", "url": "http://127.0.0.1:1"}
    assert refused(services=[health]) == [("services[0]", "bad_value")]


def test_a_plain_job_has_no_warnings():
    assert read_job({"command": "x", "tty": False, "services": []}).warnings() == []


@pytest.mark.parametrize("kind", ["hyperparameter", "pipeline"])
def test_job_types_of_later_releases(kind):
    with pytest.raises(errors.JobTypeNotAvailable) as caught:
        read_job({"command": "x", "job_type": kind})
    assert caught.value.params == {"job_type": kind}


def test_an_unknown_field_comes_first_and_every_one_is_named():
    with pytest.raises(errors.UnknownField) as caught:
        read_job({"comand": "x", "nmae": "y", "cpu_cores": -1})
    assert caught.value.params["nearest"] == "command"
    assert [one["nearest"] for one in caught.value.params["fields"]] == ["command", "name"]
    with pytest.raises(errors.UnknownField) as caught:
        read_job({"command": "x", "array": {"array_id": "a", "index": 1, "limt": 2}}, "jobs[3].")
    assert caught.value.params["field"] == "jobs[3].array.limt"
    assert caught.value.params["nearest"] == "limit"


def test_braces_in_a_refusal_are_no_placeholders():
    assert refused(env_vars={"{x}": "1"}) == [("env_vars", "bad_name")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6), JSON)
def test_whatever_is_sent_is_accepted_or_refused_with_a_code(fields, command):
    try:
        made = read_job({"command": command, **fields})
    except errors.BadRequest as error:
        json.dumps(error.params)
    else:
        spec = made.to_submission().spec
        assert spec.command
        assert "\0" not in str(spec.command)
        assert "\n" not in spec.name


def test_the_schema_is_plain_json():
    assert json.loads(json.dumps(JobSubmission.model_json_schema()))["properties"]["command"]


def test_other_bodies_are_read_the_same_way():
    assert requests.read(requests.RetryRequest, {}).fresh is False
    with pytest.raises(errors.UnknownField) as caught:
        requests.read(requests.FenceRequest, {"raeson": "x"})
    assert caught.value.params["nearest"] == "reason"
    with pytest.raises(errors.InvalidRequest, match="one of ids"):
        requests.read(requests.CancelMany, {"all": True, "ids": []})
