"""A training on two of three nodes loses one of them, and comes to the same loss."""

from __future__ import annotations

import sys
from pathlib import Path

from ray_cluster import marked
from ray_yard import kill_a_node_of
from yards import until

PROGRAM = Path(__file__).parents[2] / "socket_training.py"
STEPS, SAVE_EVERY = 60, 5


def train(yard, *go, **fields):
    command = [sys.executable, PROGRAM, STEPS, SAVE_EVERY, *go]
    return yard.submit(
        [str(word) for word in command],
        job_type="distributed",
        distributed={"nodes": 2, "placement": "spread", "gang_grace_s": 2},
        gpu_count=4,  # all of a node, so that the two nodes that are left are both needed
        checkpoint={"resume": "auto"},
        **fields,
    )


def final_losses(yard, ref):
    lines = [line for rank in (0, 1) for line in yard.logs(ref, rank=rank)]
    return [line for line in lines if line.startswith("final loss")]


def saved(yard, ref):
    return [Path(one["path"]).stem for one in yard.ask(f"/jobs/{ref}/checkpoints")]


def test_the_loss_of_a_node_costs_no_step_that_was_saved(make_ray_yard, tmp_path):
    """R30, R50, R55: the raylet of one of two nodes is killed in the middle of a training. The
    rank on the other is ended, the next attempt goes where nodes live, from the last good
    checkpoint, and the last loss is that of a training nobody disturbed, to the last bit."""
    yard = make_ray_yard().start()
    cluster = yard.cluster
    plain = train(yard)
    yard.wait(plain, "completed", seconds=120)
    go = tmp_path / "go"
    ref = train(yard, go, max_retries=2)
    half = f"step_{STEPS // 2}"
    until(lambda: half in saved(yard, ref), 120, lambda: (yard.job(ref), yard.logs(ref)))
    victim = kill_a_node_of(yard, ref)
    try:
        until(lambda: yard.attempts(ref)[0]["end"], 120, lambda: yard.attempts(ref))
        go.touch()
        yard.wait(ref, "completed", seconds=200)
        attempts = yard.attempts(ref)
        # Not first on the dead node, which Ray calls alive for a while.
        assert [one["end"] for one in attempts] == ["lost", "completed"]
        until(lambda: not marked(attempts[0]["attempt_id"]))
        assert victim not in {part["address"] for part in attempts[-1]["slices"]}
        first, *_ = yard.logs(ref, attempt=attempts[-1]["number"])
        begun = int(first.split()[-1])
        assert STEPS // 2 <= begun < STEPS
        assert begun % SAVE_EVERY == 0
        told = final_losses(yard, plain)
        assert len(told) == 2
        assert final_losses(yard, ref) == told
        codes = [event["code"] for event in yard.ask(f"/jobs/{ref}/events")]
        assert "checkpoint_chosen" in codes
    finally:
        cluster.end_node(victim)
        cluster.add_node()
