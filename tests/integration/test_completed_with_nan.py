"""A training whose loss turned NaN and that exits 0 all the same: completed, and everybody is told
that it is worth nothing (R18)."""

import sys

from yards import until

DIVERGES = """
import math
for step in range(1, 31):
    loss = 1 / step if step < {bad} else {value}
    print(f"iter {{step}}: loss {{loss:.4f}}, time 10.00ms", flush=True)
print("saved the model", flush=True)
"""


def train(yard, *, bad=21, value="math.nan", **fields):
    code = DIVERGES.format(bad=bad, value=value)
    ref = yard.submit([sys.executable, "-c", code], **fields)
    return ref, yard.wait(ref, "completed", seconds=60)


def test_it_is_completed_and_says_what_is_wrong(yard):
    ref, job = train(yard, max_retries=3)
    assert job["reason"] == {"code": "completed_with_nan", "params": {"bad_step": 21, "step": 30}}
    assert job["health"]["level"] == "critical"
    assert job["health"]["code"] == "completed_with_nan"
    assert len(yard.attempts(ref)) == 1, "it is not for us to run again what ended well"
    assert job["diagnosis"]["category"] == "nan"
    [alert] = until(lambda: yard.ask(f"/alerts?job={ref}&code=completed_with_nan"))
    assert (alert["level"], alert["status"]) == ("critical", "open")
    shown = yard.cli("explain", ref).stdout
    assert "NaN since step 21" in shown
    yard.env["RUNYARD_LANG"] = "zh"
    assert "损失自第 21 步起为 NaN" in yard.cli("show", ref).stdout


def test_infinity_counts_too_and_what_a_report_tells(yard):
    _, job = train(yard, value="math.inf")
    assert job["reason"]["code"] == "completed_with_nan"
    report = (
        "from runyard import report\n"
        "for step in range(20):\n"
        "    report(step=step, loss=float('nan') if step > 9 else 1.0)\n"
    )
    ref = yard.submit([sys.executable, "-c", report])
    job = yard.wait(ref, "completed", seconds=60)
    assert job["reason"]["params"]["bad_step"] == 10


def test_words_that_only_look_like_it_change_nothing(yard):
    ref = yard.submit("echo 'loss: 0.5'; echo 'nan is a word, inf too'; echo finance info")
    job = yard.wait(ref, "completed", seconds=60)
    assert (job["reason"], job["health"]["level"]) == (None, "unknown")
    _, job = train(yard, bad=99)
    assert job["reason"] is None


def test_a_loss_that_came_back_is_none(yard):
    code = DIVERGES.replace("step < {bad}", "step != 20").format(value="math.nan", bad=0)
    ref = yard.submit([sys.executable, "-c", code])
    assert yard.wait(ref, "completed", seconds=60)["reason"] is None
