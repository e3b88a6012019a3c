"""A loop that writes a JSON object every few steps."""

import json
import time

from tiny_network import TinyNetwork, Truth, arguments


def main() -> None:
    given = arguments(__doc__)
    network, truth = TinyNetwork(), Truth(given.truth)
    for step in range(1, given.steps + 1):
        loss = network.learn(0.1)
        time.sleep(given.sleep)
        truth.step(step)
        if step % 5 == 0 or step == given.steps:
            line = {"step": step, "max_steps": given.steps, "loss": loss, "lr": 0.1}
            print(json.dumps(line), flush=True)
            truth.loss(step, loss)
    truth.save()


if __name__ == "__main__":
    main()
