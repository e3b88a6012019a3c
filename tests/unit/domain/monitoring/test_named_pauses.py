"""Lines as programs write them, from the log to the judgement about a stall: a pause that the log
names is none for a long time, whatever framework names it (R24)."""

from __future__ import annotations

import pytest

from runyard.domain.monitoring import stalled_training
from runyard.domain.monitoring.attempt_account import AttemptAccount
from runyard.domain.monitoring.pace import Pace
from runyard.domain.monitoring.stalled_training import Signs
from runyard.domain.progress import reported
from runyard.domain.progress.hints import Hints
from runyard.domain.progress.point import Point
from runyard.domain.progress.reading import Reader

FLOOR = 600.0
EVERY = 10.0
STEPS = 20


class Job:
    """What the engine does with the lines of one attempt, with a clock of its own."""

    def __init__(self):
        self.now = 0.0
        self.reader, self.account = Reader(), AttemptAccount(Hints())
        self.pace = Pace(0.0)

    def say(self, *lines):
        for line in lines:
            points = self.reader.feed(line, self.now)
            self.account.take_log(points, self.reader.phase)
        self._look()

    def report(self, line):
        point = reported.parse_line(line, self.now)
        assert isinstance(point, Point)
        self.account.take_report(point)
        self._look()

    def wait(self, seconds):
        self.now += seconds
        self._look()

    def stalled(self):
        return stalled_training.find(self.pace, self.now, FLOOR, Signs()) is not None

    def _look(self):
        self.pace.note(self.account.step, self.account.phase, self.now)


def bar(step, total, words="", rest=""):
    percent = 100 * step // total
    drawn = "#" * (percent // 10)
    return f"{words}{percent:3d}%|{drawn:10}| {step}/{total} [00:10<00:50, 2.00it/s{rest}]"


def tqdm_step(step):
    return [bar(step, 1000, "Training: ", ", loss=0.5")]


def huggingface_step(step):
    return [bar(step, 1000)]


def huggingface_told(step):
    loss = f"{{'loss': 2.3, 'learning_rate': 5e-05, 'epoch': {step / 100}}}"
    return [loss, bar(step, 1000)]


def lightning_step(step):
    return [bar(step, 1000, "Epoch 0: ", ", v_num=0, train_loss=0.5")]


def rich_step(step):
    return [f"Epoch 0/9  ━━━━━━━━━━ {step}/1000 0:00:05 • 0:00:05 90.1it/s v_num: 0.000 loss: 0.5"]


def nanogpt_step(step):
    return [f"iter {step}: loss 2.3100, time 12.00ms, mfu 3.00%"]


def megatron_step(step):
    return [f" iteration {step:8d}/    5000 | consumed samples: 25600 | lm loss: 2.3E+00 |"]


def deepspeed_step(step):
    return [f"[Rank 0] step={step}, skipped=0, lr=[5e-05], mom=[(0.9, 0.999)]"]


PAUSES = [
    (lightning_step, "evaluating", [bar(3, 40, "Validation DataLoader 0: ") + "\x1b[A"]),
    (lightning_step, "finishing", ["`Trainer.fit` stopped: `max_steps=20` reached."]),
    (rich_step, "evaluating", ["Validation ━━━━━━━━━━ 3/40 0:00:05 • 0:00:05 80.1it/s"]),
    (huggingface_step, "evaluating", ["***** Running Evaluation *****", "  Num examples = 400"]),
    (huggingface_step, "evaluating", [bar(1, 13)]),
    (huggingface_told, "evaluating", ["{'eval_loss': 1.9, 'eval_runtime': 3.1, 'epoch': 0.2}"]),
    (huggingface_step, "evaluating", ["***** Running Prediction *****"]),
    (huggingface_step, "saving", ["Saving model checkpoint to /out/checkpoint-500"]),
    (huggingface_step, "finishing", ["{'train_runtime': 9.0, 'train_loss': 2.6, 'epoch': 3.0}"]),
    (huggingface_step, "loading", [bar(1, 4, "Loading checkpoint shards: ")]),
    (tqdm_step, "evaluating", [bar(1, 8, "Evaluating: ")]),
    (tqdm_step, "evaluating", [bar(4, 8, "val: ", ", loss=0.7")]),
    (tqdm_step, "saving", [bar(1, 8, "Writing model shards: ")]),
    (nanogpt_step, "saving", ["saving checkpoint to out"]),
    (nanogpt_step, "evaluating", ["step 20: train loss 2.1000, val loss 2.3000"]),
    (
        megatron_step,
        "evaluating",
        [" validation loss at iteration 20 | lm loss value: 2.3E+00 | lm loss PPL: 1.0E+01 |"],
    ),
    (megatron_step, "saving", ["saving checkpoint at iteration      20 to /ckpts in torch_dist"]),
    (
        deepspeed_step,
        "saving",
        ["[2026-01-01 10:00:00,000] [INFO] [Torch] Saving out/global_step20/mp_rank_00.pt..."],
    ),
]
NAMES = [f"{steps.__name__}-{phase}-{place}" for place, (steps, phase, _) in enumerate(PAUSES)]


@pytest.mark.parametrize(("steps", "phase", "lines"), PAUSES, ids=NAMES)
def test_a_pause_that_the_log_names(steps, phase, lines):
    job = Job()
    for step in range(1, STEPS):
        job.say(*steps(step))
        job.wait(EVERY)
    job.say(*steps(STEPS))
    assert job.account.phase == "training"
    job.say(*lines)
    assert (job.account.step, job.account.phase) == (STEPS, phase)
    job.wait(2.5 * FLOOR)
    assert not job.stalled()
    job.say(*steps(STEPS + 1))
    assert (job.account.step, job.account.phase) == (STEPS + 1, "training")
    # It is a pause and no pace, and the next one may be as long without a name.
    assert max(job.pace.gaps) < FLOOR < max(job.pace.pauses)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "still alive",
        "[heartbeat] training process is alive",
        "WARNING: loss scale reduced",
        "NCCL INFO waiting for rank 3",
        bar(20, 1000, "Training: ", ", loss=0.5"),
    ],
)
def test_what_names_no_pause_gives_no_time(line):
    job = Job()
    for step in range(1, STEPS + 1):
        job.say(*tqdm_step(step))
        job.wait(EVERY)
    for _ in range(int(1.2 * FLOOR / EVERY)):
        job.say(line)
        job.wait(EVERY)
    assert job.account.phase == "training"
    assert job.stalled()


def test_a_pause_that_is_named_does_not_last_for_ever():
    job = Job()
    for step in range(1, STEPS + 1):
        job.say(*lightning_step(step))
        job.wait(EVERY)
    job.say(bar(1, 40, "Validation DataLoader 0: "))
    job.wait(3 * FLOOR + EVERY)
    assert job.stalled()


@pytest.mark.parametrize("phase", ["loading", "evaluating", "saving", "finishing"])
def test_a_pause_that_the_program_reports(phase):
    job = Job()
    for step in range(1, STEPS + 1):
        job.report(f'{{"step": {step}, "total": 1000}}')
        job.wait(EVERY)
    job.report(f'{{"phase": "{phase}"}}')
    job.say("iter 500: loss 2.3100, time 12.00ms")  # its log is not asked how far it is
    assert (job.account.step, job.account.phase) == (STEPS, phase)
    job.wait(2.5 * FLOOR)
    assert not job.stalled()
    job.report(f'{{"step": {STEPS + 1}}}')
    assert job.account.phase == "training"


def test_a_metric_that_is_called_phase_is_a_metric():
    point = reported.parse_line('{"step": 1, "phase": 2}', 0.0)
    assert isinstance(point, Point)
    assert (point.phase, point.values) == (None, {"phase": 2.0})
    assert reported.parse_line('{"phase": "dancing"}', 0.0) is None
