"""A training whose loss turns NaN goes back to a checkpoint from before it (R19, R20)."""

from __future__ import annotations

import json
import sys

from yards import until

PROGRAM = """
import json, os, sys, zipfile
seen, rate = sys.argv[1], float(sys.argv[3])
given = os.environ.get("RUNYARD_RESUME_FROM", "")
step = 0
if given:
    with zipfile.ZipFile(given) as file:
        step = int(file.read("model/step"))
with open(seen, "a") as file:
    file.write(json.dumps({"step": step, "rate": rate}) + "\\n")
while step < 40:
    step += 1
    loss = float("nan") if step >= 25 and rate > 0.01 else 1.0 / step
    with open(os.environ["RUNYARD_METRICS_FILE"], "a") as file:
        file.write(json.dumps({"step": step, "loss": loss}) + "\\n")
    print(f"step {step} loss {loss}", flush=True)
    if step % 10 == 0 or step == 29:
        path = os.path.join(os.environ["RUNYARD_CHECKPOINT_DIR"], f"model_step_{step}.pt")
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("model/data.pkl", b"weights" * 1000)
            file.writestr("model/step", str(step))
    if step == 30 and loss != loss:
        raise SystemExit("ValueError: loss is NaN at step 25, training diverged")
"""


def test_it_goes_back_to_before_the_bad_step_with_a_lower_rate(yard, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    seen = tmp_path / "seen"
    command = [sys.executable, str(program), str(seen), "--learning_rate", "0.02"]
    ref = yard.submit(command, max_retries=3)
    yard.wait(ref, "completed", seconds=90)
    starts = [json.loads(line) for line in seen.read_text().splitlines()]
    assert starts[0] == {"step": 0, "rate": 0.02}
    assert starts[1]["step"] == 20, "saved at 29 and 30 was after the loss turned NaN"
    assert starts[-1]["rate"] <= 0.01


# As Hugging Face's Trainer and nanoGPT do: it prints the loss and trains on, whatever it is.
TRAINS_ON = """
import os, sys, time, zipfile
seen, rate = sys.argv[1], float(sys.argv[3])
given = os.environ.get("RUNYARD_RESUME_FROM", "")
step = 0
if given:
    with zipfile.ZipFile(given) as file:
        step = int(file.read("model/step"))
with open(seen, "a") as file:
    file.write(f"{step} {rate}\\n")
bad = False
while step < 600:
    step += 1
    bad = bad or (step >= 300 and rate > 0.01)
    loss = float("nan") if bad else 1.0 / step
    print(f"iter {step}: loss {loss:.4f}, time 10.00ms", flush=True)
    if step % 50 == 0:
        path = os.path.join(os.environ["RUNYARD_CHECKPOINT_DIR"], f"model_step_{step}.pt")
        with zipfile.ZipFile(path + ".tmp", "w") as file:
            file.writestr("model/data.pkl", b"weights" * 1000)
            file.writestr("model/step", str(step))
        os.rename(path + ".tmp", path)
    if step == 400 and bad:
        time.sleep(600)  # a long training that nobody looks at
"""


def test_one_that_trains_on_is_ended_and_goes_back(make_yard, tmp_path):
    """R18, R19, R20: with `nan_action = stop` nothing needs to end by itself."""
    env = {"RUNYARD_MONITORING_INTERVAL": "0.5", "RUNYARD_NAN_ACTION": "stop"}
    yard = make_yard(env=env).start()
    program, seen = tmp_path / "program.py", tmp_path / "seen"
    program.write_text(TRAINS_ON)
    command = [sys.executable, str(program), str(seen), "--learning_rate", "0.02"]
    ref = yard.submit(command, max_retries=3, grace_s=5)
    yard.wait(ref, "completed", seconds=120)
    assert seen.read_text().splitlines() == ["0 0.02", "250 0.01"]
    first = yard.attempts(ref)[0]
    assert first["diagnosis"]["category"] == "nan"
    assert first["diagnosis"]["facts"]["bad_step"] == 300
    assert first["plan"]["strategy"] == "restart_from_checkpoint"
    [alert] = yard.ask(f"/alerts?job={ref}&code=not_finite")
    assert [one["action"] for one in alert["actions_taken"]] == ["retry"]
    screen = yard.cli("explain", ref).stdout
    assert "model_step_250.pt (step 250)" in screen
    assert "model_step_300" not in screen


def test_one_that_trains_on_is_only_told_of_where_nobody_wants_more(make_yard, tmp_path):
    """The default: an alert, and the program decides."""
    yard = make_yard(env={"RUNYARD_MONITORING_INTERVAL": "0.5"}).start()
    program, seen = tmp_path / "program.py", tmp_path / "seen"
    program.write_text(TRAINS_ON)
    ref = yard.submit([sys.executable, str(program), str(seen), "--learning_rate", "0.02"])
    until(lambda: yard.ask(f"/alerts?job={ref}&code=not_finite"))
    assert yard.status(ref) == "running"
    yard.cancel(ref)
