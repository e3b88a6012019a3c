"""A loop that prints one line per epoch."""

import math
import time

from tiny_network import TinyNetwork, Truth, arguments


def main() -> None:
    given = arguments(__doc__, epochs=30)
    network, truth = TinyNetwork(), Truth(given.truth)
    per_epoch = math.ceil(given.steps / given.epochs)
    step = 0
    for epoch in range(1, given.epochs + 1):
        total = 0.0
        for _ in range(per_epoch):
            total += network.learn(0.1)
            time.sleep(given.sleep)
            step += 1
            truth.step(step)
        loss, held_out = total / per_epoch, network.validate()
        print(
            f"Epoch {epoch}/{given.epochs} - Loss: {loss:.4f} - Val Loss: {held_out:.4f}",
            flush=True,
        )
        truth.loss(epoch, float(f"{loss:.4f}"))
    truth.save()


if __name__ == "__main__":
    main()
