"""Attempts of a scripted executor that fail with what they wrote to their log."""

from pathlib import Path

OOM = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 88, in <module>\n'
    "    loss = model(x, y)\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 30.00 GiB. GPU 0 has a total "
    "capacity of 139.80 GiB of which 19.29 GiB is free.\n"
)


def say(engine, ref, text):
    """Into the log of its newest attempt."""
    path = Path(engine.executor.log_path(engine.job(ref).attempt_id()))
    with path.open("a") as log:
        log.write(text)


def ask_for_the_scale(engine, ref):
    """As `report.batch_scale()` does in its newest attempt."""
    attempt = engine.job(ref).attempt_id()
    path = engine.settings.data_dir / "attempts" / attempt / "metrics.jsonl"
    with path.open("a") as file:
        file.write('{"v":1,"t":1700000000.5,"pid":4711,"rank":0,"kind":"batch_scale"}\n')


def fail(engine, ref, text, code=1, **how):
    say(engine, ref, text)
    engine.finish(ref, code, **how)


def next_attempt(engine, ref, number):
    engine.let_time_pass(lambda: engine.job(ref).attempt_number == number)
    engine.wait(ref, "running")
    return engine.executor.launches[f"{ref}.{number}"]
