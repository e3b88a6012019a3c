"""What each command asks and prints."""

import json
import sqlite3
import time

import pytest

from scripted_server import Reply, problem

NOW = time.time()
JOB = {
    "job_id": "job-abc123",
    "id": 7,
    "name": "resnet\x1b[31m\nx",
    "status": "pending",
    "stage": None,
    "progress": 0,
    "reason": {"code": "max_concurrent", "params": {"limit": 2, "running": 2}},
    "wait": {
        "code": "max_concurrent",
        "params": {},
        "position": 3,
        "est_start_low": NOW + 7200,
        "est_start_high": NOW + 10800,
        "blockers": ["job-b"],
    },
    "attempt": None,
    "submitted_at": NOW - 90,
    "queued_at": NOW - 90,
    "started_at": None,
    "completed_at": None,
    "owner": "ann",
    "priority": "medium",
    "cpu_cores": 8,
    "memory_gb": 32,
    "gpu_count": 2,
    "gpu_type": None,
    "command": ["python", "train.py", "two words"],
    "working_dir": "/w",
    "grace_s": 1,
    "max_retries": 3,
    "retry_count": 0,
    "labels": {"team": "a"},
}
ENDED = JOB | {
    "status": "failed",
    "reason": {"code": "exit_code", "params": {"code": 7}},
    "wait": None,
    "attempt": {"number": 1, "status": "ended", "end": "failed", "exit_code": 7, "signal": None},
    "started_at": NOW - 80,
    "completed_at": NOW - 20,
}
RECEIPT = {
    "requested_by": "ann",
    "requested_at": NOW,
    "stage": "running",
    "signals": [{"signal": 15, "at": NOW, "target": "group 12"}],
    "processes_ended": 5,
    "proof": "echild",
    "stuck": [],
    "gpus": [{"index": 0, "memory_before_mb": 900, "memory_after_mb": 0}],
    "ports": [38001],
    "shm_bytes": 2048,
    "temp_removed": True,
    "seconds": 1.25,
    "ended_at": NOW + 1,
}


def test_ls_shows_what_people_look_for(server, cli):
    """R37"""
    server.on("GET", "/jobs", Reply(200, [JOB], {"X-Total-Count": "4"}))
    code, out, _ = cli("ls")
    assert code == 0
    for words in ("job-abc123", "pending", "8C / 32GB / 2GPU", "ann", "2 of at most 2 jobs run"):
        assert words in out
    assert "\x1b" not in out
    assert "3 more" in out


def test_ls_asks_with_its_filters(server, cli):
    server.on("GET", "/jobs", [])
    code, out, _ = cli(
        *("ls", "res", "-s", "running,failed", "--owner", "ann", "--label", "a=b"),
        *("--since", "2h", "-n", "10"),
    )
    assert (code, out) == (0, "No job matches.\n")
    query = server.asked[0].query
    assert query["status"] == ["running", "failed"]
    assert (query["q"], query["owner"], query["label"]) == (["res"], ["ann"], ["a=b"])
    assert abs(float(query["since"][0]) - (time.time() - 7200)) < 60
    assert query["limit"] == ["10"]


def test_ls_json_and_quiet(server, cli):
    server.on("GET", "/jobs", [JOB])
    assert json.loads(cli("ls", "--json")[1]) == [JOB]
    assert cli("ls", "--quiet")[1] == "job-abc123\n"
    assert cli("ls", "-s", "runing")[0] == 2


def test_show_is_a_card(server, cli):
    server.on("GET", "/jobs/7", JOB)
    server.on("GET", "/jobs/7/attempts", [ENDED["attempt"]])
    out = cli("show", "7")[1]
    for words in (
        f"number     {JOB['id']}",
        "python train.py 'two words'",
        "3, may start in",
        "team=a",
        "2 of at most 2",
    ):
        assert words in out
    assert json.loads(cli("show", "7", "--json")[1])["job_id"] == "job-abc123"


def test_show_receipt(server, cli):
    server.on("GET", "/jobs/7/receipt", RECEIPT)
    code, out, _ = cli("show", "--receipt", "7")
    assert code == 0
    for words in ("SIGTERM", "echild", "900 -> 0 MB", "38001", "2.0 KB", "1.25 s"):
        assert words in out
    server.on("GET", "/jobs/7/receipt", problem(404, "not_found", "No receipt yet."))
    assert "no receipt yet" in cli("show", "--receipt", "7")[1]


def test_show_names_the_nodes_of_a_cluster(server, cli):
    attempt = {"number": 1, "status": "running", "node": "node-server"}
    parts = [{"node": "ray-a"}, {"node": "ray-b"}]
    server.on("GET", "/jobs/7", JOB)
    server.on("GET", "/jobs/7/attempts", [{**attempt, "slices": parts}])
    server.on("GET", "/alerts", {"alerts": []})
    out = cli("show", "7")[1]
    assert "ray-a, ray-b" in out
    assert "node-server" not in out


def test_explain_for_waiting_and_ended(server, cli):
    server.on("GET", "/jobs/7", JOB)
    server.on("GET", "/jobs/7/explain", {"log_tail": []})
    out = cli("explain", "7")[1]
    for words in ("2 of at most 2 jobs run", "place ", "job-b"):
        assert words in out
    server.on("GET", "/jobs/7", ENDED)
    server.on("GET", "/jobs/7/explain", {"log_tail": ["Traceback", "ValueError: bad"]})
    out = cli("explain", "7")[1]
    for words in ("exit code 7", "ValueError: bad", "runyard logs job-abc123"):
        assert words in out


def test_explain_says_what_to_do_about_a_wait_that_does_not_pass(server, cli):
    too_large = {"wanted": 2, "resource": "gpu", "largest": 0}
    server.on("GET", "/jobs/7/explain", {"log_tail": []})
    server.on("GET", "/jobs/7", {**JOB, "reason": {"code": "never_fits", "params": too_large}})
    assert "submit it with less" in cli("explain", "7")[1]
    busy = {"gate": "cpu", "value": 97, "limit": 90}
    server.on("GET", "/jobs/7", {**JOB, "reason": {"code": "gate", "params": busy}})
    assert "gate_cpu" in cli("explain", "7")[1]


def test_explain_a_running_job_says_how_long_it_runs(server, cli):
    running = {"job_id": "job-abc123", "status": "running", "started_at": time.time() - 5}
    server.on("GET", "/jobs/7", running)
    server.on("GET", "/jobs/7/explain", {"log_tail": []})
    out = cli("explain", "7")[1]
    assert "running for" in out
    assert "waiting for" not in out


def test_queue(server, cli):
    gate = {"name": "cpu", "value": 97.0, "limit": 90.0, "closed": True}
    status = {
        "dispatching": False,
        "max_concurrent": 2,
        "counts": {"pending": 9},
        "waiting": [JOB],
        "running": [JOB | {"status": "running", "job_id": "job-r"}],
        "gates": [gate],
    }
    server.on("GET", "/queue/status", status)
    out = cli("queue")[1]
    for words in ("paused", "CPU", "97", "1 of at most 2 run, 9 wait", "job-r", "job-abc123"):
        assert words in out
    assert json.loads(cli("queue", "--json")[1]) == status
    assert cli("queue", "-q")[1] == "job-abc123\n"
    server.on("POST", "/system/.*", {"dispatching": True})
    assert cli("queue", "pause")[0] == cli("queue", "start")[0] == 0
    asked = [one.path.rpartition("/")[2] for one in server.asked if one.method == "POST"]
    assert asked == ["stop-queue", "start-queue"]


def test_gpus_nodes_and_keys(server, cli):
    gpu = {
        "node_id": "n1",
        "index": 0,
        "uuid": "GPU-1",
        "name": "A100",
        "memory_mb": 81920,
        "used_mb": 5,
        "fenced": True,
        "fence_reason": "hot",
        "holders": [{"user": "bob", "pid": 9, "name": "python"}],
        "jobs": [{"job_id": "job-x", "share": 0.5}],
    }
    server.on("GET", "/gpus", [gpu])
    out = cli("gpus")[1]
    for words in ("A100", "fenced (hot)", "bob pid 9", "job-x (0.5)", "5 / 81920 MB"):
        assert words in out
    server.on("POST", "/gpus/0/fence", gpu)
    assert cli("gpus", "fence", "0", "--reason", "hot")[0] == 0
    assert server.asked[-1].body == {"reason": "hot"}
    node = {"node_id": "n1", "name": "big", "cpu_cores": 64.0, "memory_gb": 512.0, "gpu_count": 8}
    server.on("GET", "/nodes", [node | {"load": {"cpu": 12.3}, "drained": False}])
    out = cli("nodes")[1]
    for words in ("n1", "big", "64", "512GB", "8", "cpu 12%"):
        assert words in out
    server.on("POST", "/nodes/n1/drain", node)
    assert "n1 is drained" in cli("drain", "big")[1]
    assert cli("drain", "other")[0] == 4
    key = {"key_id": 3, "name": "ci", "role": "user", "prefix": "ry_ab", "created_at": NOW}
    server.on("GET", "/keys", [key])
    assert "ry_ab" in cli("keys", "ls")[1]
    assert json.loads(cli("keys", "ls", "--json")[1]) == [key]
    assert json.loads(cli("keys", "--json")[1]) == [key]
    server.on("POST", "/keys", Reply(201, key | {"secret": "ry_abcdef"}))
    code, out, err = cli("keys", "create", "ci", "--role", "viewer", "--expires", "1d")
    assert (code, out) == (0, "ry_abcdef\n")
    assert "not shown again" in err
    server.on("DELETE", "/keys/3", Reply(204, b""))
    assert cli("keys", "revoke", "ci")[0] == 0
    assert cli("keys", "revoke", "nobody")[0] == 4


def test_wait_ends_with_the_jobs_code(server, cli):
    server.on("GET", "/jobs/7", ENDED | {"status": "running"})
    server.on("GET", "/jobs/.*/wait", ENDED)
    code, _, err = cli("wait", "7")
    assert code == 7
    assert "exit code 7" in err
    server.on("GET", "/jobs/.*/wait", ENDED | {"status": "running"})
    assert cli("wait", "7", "--timeout", "0.1s")[0] == 6


def test_cancel_waits_for_the_proof(server, cli):
    server.on(
        "POST", "/jobs/7/cancel", Reply(202, {"job_id": "job-abc123", "status": "cancelling"})
    )
    server.on("GET", "/jobs/7", JOB | {"status": "cancelling"}, JOB | {"status": "cancelled"})
    server.on("GET", "/jobs/job-abc123", JOB | {"status": "cancelled"})
    server.on("GET", "/jobs/job-abc123/wait", JOB | {"status": "cancelled"})
    server.on("GET", "/jobs/job-abc123/receipt", RECEIPT)
    code, out, _ = cli("cancel", "7")
    assert code == 0
    assert out == (
        "job-abc123 cancelled: 5 processes ended in 1.25 s, none is left (proof: echild);"
        " given back: GPU 0, port 38001\n"
    )


def test_memory_that_nobody_could_read_is_not_called_given_back(server, cli):
    """R2: of nodes without the means, and of a node that was lost."""
    gpus = [{"index": 0}, {"index": 1, "memory_after_mb": 3, "node": "b"}]
    receipt = RECEIPT | {"gpus": gpus, "ports": []}
    answer = {"job_id": "job-abc123", "status": "cancelled", "receipt": receipt}
    server.on("POST", "/jobs/7/cancel", answer)
    server.on("GET", "/jobs/7", JOB | {"status": "cancelled"})
    server.on("GET", "/jobs/.*/receipt", receipt)
    _, out, _ = cli("cancel", "7")
    assert out.endswith("; given back: GPU 1; memory could not be read: GPU 0\n")
    _, out, _ = cli("show", "7", "--receipt")
    assert "GPU 0: memory could not be read" in out
    assert "GPU 1 (b): ? -> 3 MB" in out


def test_cancel_now_many_and_ended(server, cli):
    server.on("POST", "/jobs/3/force-kill", {"job_id": "job-c", "status": "cancelled"})
    server.on(
        "POST", "/jobs/4/force-kill", problem(409, "already_ended", "Ended.", status="failed")
    )
    server.on("POST", "/jobs/5/force-kill", problem(404, "job_not_found", "There is no job 5."))
    code, out, err = cli("cancel", "--now", "3-5")
    assert code == 4
    assert "job-c cancelled" in out
    assert "4 has already ended: failed" in out
    assert "There is no job 5." in err
    assert cli("cancel")[0] == 2


def test_cancel_all(server, cli):
    server.on("GET", "/jobs", [JOB, JOB | {"job_id": "job-d"}])
    server.on("POST", "/jobs/job-.*/cancel", {"status": "cancelled"})
    code, out, _ = cli("cancel", "--all", "--quiet")
    assert (code, out) == (0, "job-abc123\njob-d\n")
    assert "running" in server.asked[0].query["status"]


@pytest.mark.parametrize(
    ("verb", "said"), [("hold", "is held"), ("release", "released"), ("retry", "pending again")]
)
def test_small_changes(server, cli, verb, said):
    server.on("POST", f"/jobs/7/{verb}", JOB)
    code, out, _ = cli(verb, "7")
    assert code == 0
    assert said in out
    server.on("POST", f"/jobs/7/{verb}", problem(409, "conflict", "It cannot be."))
    assert cli(verb, "7")[0] == 5


def test_submit_prints_the_id(server, cli, tmp_path):
    answer = {"job_id": "job-abc123", "id": 1, "status": "pending", "submitted_at": "x"}
    warning = {"code": "not_yet_honoured", "params": {"field": "prefetch"}}
    server.on("POST", "/jobs", Reply(201, answer | {"warnings": [warning]}))
    (tmp_path / "job.yaml").write_text("name: from-file\ncommand: sleep 60\nprefetch: [hf://x]\n")
    assert cli("submit", "-f", "job.yaml", "--quiet")[:2] == (0, "job-abc123\n")
    code, out, err = cli("submit", "-f", "job.yaml")
    assert (code, out) == (0, "job-abc123\n")
    assert "prefetch" in err
    told = json.loads(cli("submit", "--json", "--", "true")[1])
    assert told["job_id"] == "job-abc123"
    assert server.asked[0].body["name"] == "from-file"


def test_a_misspelt_field_is_answered_with_the_right_name(server, cli, tmp_path):
    refused = problem(
        422,
        "unknown_field",
        "There is no field 'comand'. Did you mean 'command'?",
        field="comand",
        nearest="command",
    )
    server.on("POST", "/jobs", refused)
    (tmp_path / "bad.yaml").write_text("comand: true\n")
    code, _, err = cli("submit", "-f", "bad.yaml")
    assert code
    assert "'command'" in err


def test_an_array_is_one_request(server, cli):
    made = [{"job_id": f"job-{n}", "status": "pending"} for n in range(3)]
    server.on("POST", "/jobs/batch", Reply(201, {"jobs": made, "count": 3}))
    code, out, _ = cli("run", "-d", "--array", "0-2", "--", "true")
    assert (code, out) == (0, "job-0\njob-1\njob-2\n")
    assert cli("run", "--array", "0-2", "--", "true")[0] == 2


def test_logs_are_exact(server, capfdbinary):
    data = b"line\r\xff\x00bar 50%\rbar 99%\nlast"
    server.on("GET", "/jobs/7/logs", Reply(200, data, {"X-Log-Size": str(len(data))}))
    from runyard.cli.main import main

    assert main(["logs", "7", "--url", server.url]) == 0
    assert capfdbinary.readouterr().out == data


def test_logs_by_lines(server, cli):
    server.on("GET", "/jobs/7/logs", {"logs": ["a", "b"]})
    assert cli("logs", "7", "-n", "2")[1] == "a\nb\n"
    assert json.loads(cli("logs", "7", "--json")[1]) == {"logs": ["a", "b"]}
    cli("logs", "7", "--grep", "x", "--attempt", "1")
    assert [one.query.get("tail") for one in server.asked] == [["2"], None, ["100000"]]
    assert server.asked[1].query["from"] == ["0"]


def test_logs_follow_by_events(server, cli):
    stream = (
        b": runyard\n\nid: 1:2\ndata: a\n\nevent: partial\ndata: bar\n\n"
        b'event: gap\nid: 1:9\ndata: {"text": "[7 bytes dropped]"}\n\nid: 1:11\ndata: b\n\n'
        b'event: end\ndata: {"status": "failed"}\n\n'
    )
    server.on("GET", "/jobs/.*/logs", Reply(200, stream, {"Content-Type": "text/event-stream"}))
    server.on("GET", "/jobs/[^/]*", ENDED)
    code, out, err = cli("logs", "-f", "-n", "5", "7")
    assert (code, out) == (0, "a\n[7 bytes dropped]\nb\n")
    assert "failed" in err


def test_prune_asks_before_it_deletes(server, cli):
    old = ENDED | {"job_id": "job-old", "completed_at": NOW - 40 * 86400}
    server.on("GET", "/jobs", [ENDED, old])
    server.on("DELETE", "/jobs/.*", Reply(204, b""))
    assert cli("prune", "--dry-run")[1] == "job-old\n"
    assert cli("prune")[0] == 2
    assert not server.requests("DELETE", ".*")
    assert cli("prune", "--yes")[0] == 0
    assert [one.path.rpartition("/")[2] for one in server.requests("DELETE", ".*")] == ["job-old"]


def test_backup_copies_a_live_database(cli, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    live = sqlite3.connect(folder / "runyard.db")
    live.execute("pragma journal_mode=wal")
    live.execute("create table t (x)")
    live.execute("insert into t values (42)")
    live.commit()
    assert cli("backup", tmp_path / "copy.db")[0] == 0
    live.close()
    copy = sqlite3.connect(tmp_path / "copy.db")
    assert copy.execute("select x from t").fetchall() == [(42,)]
    copy.close()
    assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0
    assert cli("backup", tmp_path / "copy.db")[0] == 2
    assert cli("backup", tmp_path / "copy.db", "--force")[0] == 0
    assert cli("backup", tmp_path / "x.db", "--data-dir", tmp_path / "none")[0] == 4


def test_backup_of_postgresql_says_how(cli, monkeypatch):
    monkeypatch.setenv("RUNYARD_DATABASE_URL", "postgresql://localhost/x")
    code, _, err = cli("backup", "x")
    assert code == 2
    assert "pg_dump" in err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(cli, shell):
    code, out, _ = cli("completion", shell)
    assert code == 0
    assert "runyard completion words" in out


def test_completion_of_commands_options_and_ids(server, cli):
    server.on("GET", "/jobs", [JOB])
    assert cli("completion", "words", "ca")[1] == "cancel\n"
    assert "--priority\n" in cli("completion", "words", "run", "--pri")[1]
    assert cli("completion", "words", "logs", "job-")[1] == "job-abc123\n"
    assert cli("completion", "words", "run", "--", "x")[1] == ""
    server.close()
    assert cli("completion", "words", "logs", "")[:2] == (0, "")


def test_doctor_checks_this_machine(server, cli):
    server.on("GET", "/readyz", {"ok": True, "version": "9.9"})
    server.on("GET", "/queue/status", {})
    code, out, _ = cli("doctor", "--json")
    told = json.loads(out)
    checks = {check["name"]: check for check in told["checks"]}
    assert told["ok"] is (code == 0)
    named = ("python", "data directory", "disk", "file system", "locks", "containment", "gpu")
    for name in (*named, "stacks"):
        assert checks[name]["level"] in ("ok", "warn", "fail")
        assert checks[name]["seen"]
    assert checks["locks"]["level"] == "ok"
    assert "9.9" in checks["server"]["seen"]
    assert checks["key"]["level"] == "ok"
    server.on("GET", "/queue/status", problem(401, "unauthenticated", "A valid key is needed."))
    code, out, _ = cli("doctor")
    assert code == 1
    assert "fail  key" in out
    assert "RUNYARD_API_KEY" in out


def test_doctor_without_a_server_only_warns(server, cli, tmp_path):
    server.close()
    (tmp_path / "data").mkdir(mode=0o755)
    code, out, _ = cli("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert checks["server"]["level"] == "warn"
    assert checks["data directory"]["level"] == "warn"
    assert "chmod 700" in checks["data directory"]["advice"]
    assert code == 0
