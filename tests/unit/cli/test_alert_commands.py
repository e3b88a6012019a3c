"""runyard alerts, and the alerts that runyard show lists."""

import json
import time

ALERT = {
    "id": 3,
    "key": "cannot_be_killed:job-abc.1",
    "level": "critical",
    "code": "cannot_be_killed",
    "params": {
        "processes": [
            {"pid": 71, "name": "train", "state": "D", "where": "nfs_wait", "user": "ann"}
        ]
    },
    "job_id": "job-abc",
    "attempt_id": "job-abc.1",
    "node_id": "node-1",
    "status": "open",
    "times": 4,
    "opened_at": time.time() - 600,
    "seen_at": time.time() - 5,
    "closed_at": None,
    "acknowledged_by": None,
    "evidence": {},
    "actions_taken": [],
}


def test_open_ones_are_listed_with_their_holder(server, cli):
    """R5"""
    server.on("GET", "/alerts", [ALERT])
    code, out, _ = cli("alerts", "--job", "job-abc", "--level", "critical")
    assert code == 0
    for words in ("critical", "job-abc", "cannot be killed: pid 71 (train, ann, state D in nfs"):
        assert words in " ".join(out.split())
    [asked] = server.requests("GET", "/alerts")
    assert asked.query["status"] == ["open", "acknowledged"]
    assert (asked.query["job"], asked.query["level"]) == (["job-abc"], ["critical"])


def test_all_of_them_as_json_and_as_ids(server, cli):
    server.on("GET", "/alerts", [ALERT])
    assert json.loads(cli("alerts", "--all", "--json")[1]) == [ALERT]
    assert cli("alerts", "--all", "-q")[1] == "3\n"
    assert all("status" not in asked.query for asked in server.requests("GET", "/alerts"))


def test_a_stall_whose_stacks_could_not_be_read_says_what_helps(server, cli):
    stall = {"code": "stalled_training", "params": {"seconds": 900, "step": 5, "budget_s": 600}}
    server.on("GET", "/alerts", [ALERT | stall | {"evidence": {"stacks_unread": True}}])
    assert "'stacks' of 'runyard doctor'" in " ".join(cli("alerts")[1].split())
    server.on("GET", "/alerts", [ALERT | stall | {"evidence": {"stacks_unread": False}}])
    assert "doctor" not in cli("alerts")[1]


def test_nothing_needs_attention(server, cli):
    server.on("GET", "/alerts", [])
    assert cli("alerts")[:2] == (0, "Nothing needs attention.\n")


def test_acknowledge_and_close(server, cli):
    server.on("POST", "/alerts/3/acknowledge", ALERT | {"status": "acknowledged"})
    server.on("POST", "/alerts/3/close", ALERT | {"status": "closed"})
    assert cli("alerts", "ack", 3)[:2] == (0, "Alert 3 is acknowledged.\n")
    assert cli("alerts", "close", "3")[:2] == (0, "Alert 3 is closed.\n")


def test_which_alert(cli):
    for words in (("ack",), ("close", "job-abc")):
        code, _, err = cli("alerts", *words)
        assert code == 2
        assert "Which alert?" in err
