"""A loop that tells of itself, resumes where it was, and saves itself when it is asked to stop."""

import json
import time
from pathlib import Path

from tiny_network import TinyNetwork, Truth, arguments

from runyard import report


def restore(network: TinyNetwork) -> int:
    """The step to go on from."""
    path = report.resume_from()
    if path is None:
        return 0
    saved = json.loads(Path(path).read_text(encoding="utf-8"))
    network.inner = [tuple(pair) for pair in saved["inner"]]
    network.outer, network.shift = saved["outer"], saved["shift"]
    return int(saved["step"])


def save(network: TinyNetwork, step: int, loss: float) -> None:
    weights = {
        "inner": network.inner,
        "outer": network.outer,
        "shift": network.shift,
        "step": step,
    }

    def write(path: str) -> None:
        Path(path).write_text(json.dumps(weights), encoding="utf-8")

    report.save_checkpoint(write, f"checkpoints/step-{step}.json", step, loss=loss)


def main() -> None:
    given = arguments(__doc__)
    rate = float(report.params().get("lr", 0.1))
    network, truth = TinyNetwork(), Truth(given.truth)
    for step in range(restore(network) + 1, given.steps + 1):
        loss = network.learn(rate)
        time.sleep(given.sleep)
        truth.step(step)
        report(step=step, total=given.steps, loss=loss, lr=rate)
        truth.loss(step, loss)
        if report.should_stop():
            save(network, step, loss)
            break
        if step % 50 == 0:
            save(network, step, loss)
    truth.save()


if __name__ == "__main__":
    main()
