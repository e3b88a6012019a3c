"""A loop that writes a JSON object every few steps."""

import json
import time

from tiny_network import TinyNetwork, Truth, arguments


def main() -> None:
    given = arguments(__doc__, lr=0.1)
    network, truth = TinyNetwork(), Truth(given.truth)
    for step in range(1, given.steps + 1):
        loss = network.learn(given.lr)
        time.sleep(given.sleep)
        truth.step(step)
        if step % 5 == 0 or step == given.steps:
            line = {"step": step, "max_steps": given.steps, "loss": loss, "lr": given.lr}
            print(json.dumps(line), flush=True)
            truth.loss(step, loss)
    truth.save()


if __name__ == "__main__":
    main()
