"""runyard checkpoints and runyard datasets."""

import json

CHECKPOINT = {
    "id": 1,
    "path": "/out/checkpoints/checkpoint-1500",
    "attempt": 2,
    "family": "huggingface",
    "step": 1500,
    "size_bytes": 2_000_000,
    "saved_at": "2026-01-02T03:04:05Z",
    "verdict": "bad",
    "why": {"code": "truncated", "params": {"file": "optimizer.pt"}},
    "metrics": {},
    "reported": False,
    "checked_at": None,
}
DATASET = {
    "id": 4,
    "name": "images",
    "uri": "https://example.org/i.tar",
    "hash": None,
    "variable": "RUNYARD_DATASET_IMAGES",
    "created_by": "ann",
    "created_at": "2026-01-02T03:04:05Z",
}


def test_checkpoints_are_listed_with_what_is_wrong(server, cli):
    """R19"""
    server.on("GET", "/jobs/7/checkpoints", [CHECKPOINT])
    code, out, _ = cli("checkpoints", "7")
    assert code == 0
    for words in ("1500", "bad: truncated", "huggingface", "checkpoint-1500"):
        assert words in out
    assert json.loads(cli("checkpoints", "7", "--json")[1]) == [CHECKPOINT]
    assert cli("checkpoints", "7", "-q")[1] == CHECKPOINT["path"] + "\n"
    server.on("GET", "/jobs/7/checkpoints", [])
    assert "no checkpoints" in cli("checkpoints", "7")[1]


def test_datasets_are_added_listed_and_removed(server, cli):
    """R39"""
    server.on("POST", "/datasets", DATASET)
    out = cli("datasets", "add", "images", "https://example.org/i.tar", "--hash", "sha256:00")[1]
    assert "number 4" in out
    assert "RUNYARD_DATASET_IMAGES" in out
    [asked] = server.requests("POST", "/datasets")
    assert asked.body["hash"] == "sha256:00"
    assert cli("datasets", "add", "images", "file:///x", "-q")[1] == "4\n"
    server.on("GET", "/datasets", [DATASET])
    assert "images" in cli("datasets")[1]
    assert cli("datasets", "list", "-q")[1] == "4\n"
    assert json.loads(cli("datasets", "--json")[1]) == [DATASET]
    server.on("DELETE", "/datasets/images", None)
    assert "gone" in cli("datasets", "rm", "images")[1]
    server.on("GET", "/datasets", [])
    assert "no datasets" in cli("datasets")[1]


def test_a_metric_that_is_not_there_is_told_with_those_that_are(server, cli):
    loss = {"steps": [1], "times": [1.0], "values": [0.5], "sampled": False}
    server.on("GET", "/jobs/7/metrics", {"series": {"loss": loss}})
    code, out, _ = cli("metrics", "7", "-k", "nope")
    assert code == 0
    assert out.strip() == "7 has no metric nope; it has: loss"
