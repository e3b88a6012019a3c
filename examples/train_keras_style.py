"""What Keras 3 leaves in a log: a line that names the epoch, and a bar drawn over itself."""

import math
import sys
import time

from tiny_network import TinyNetwork, Truth, arguments

WIDTH = 20


def draw(batch: int, batches: int, seconds: float, metrics: str) -> None:
    filled = WIDTH * batch // batches
    bar = f"\x1b[32m{'━' * filled}\x1b[0m\x1b[37m{'━' * (WIDTH - filled)}\x1b[0m"
    left = f"\x1b[1m{seconds * (batches - batch):.0f}s\x1b[0m"
    head = f"\x1b[1m{batch:{len(str(batches))}d}/{batches}\x1b[0m"
    sys.stdout.write(f"\r{head} {bar} {left} {seconds * 1000:.0f}ms/step - {metrics}")
    sys.stdout.flush()


def main() -> None:
    given = arguments(__doc__, epochs=3)
    network, truth = TinyNetwork(), Truth(given.truth)
    per_epoch = math.ceil(given.steps / given.epochs)
    step = 0
    for epoch in range(1, given.epochs + 1):
        print(f"Epoch {epoch}/{given.epochs}", flush=True)
        total, began = 0.0, time.perf_counter()
        for batch in range(1, per_epoch + 1):
            total += network.learn(0.1)
            time.sleep(given.sleep)
            step += 1
            truth.step(step)
            metrics = f"loss: {total / batch:.4f}"
            if batch == per_epoch:
                metrics += f" - val_loss: {network.validate():.4f}"
            draw(batch, per_epoch, (time.perf_counter() - began) / batch, metrics)
            truth.loss(step, float(f"{total / batch:.4f}"))
        print(flush=True)
    truth.save()


if __name__ == "__main__":
    main()
