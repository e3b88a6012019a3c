"""A training whose loss turns NaN goes back to a checkpoint from before it (R19, R20)."""

from __future__ import annotations

import json
import sys

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
