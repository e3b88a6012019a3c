"""What the Trainer of transformers leaves in a log: one bar over all steps, dicts in between, and
the bar of an evaluation below it."""

import math
import time

from tiny_network import TinyNetwork, Truth, arguments
from tqdm import tqdm


def evaluate(network: TinyNetwork, epoch: float, sleep: float) -> None:
    for _ in tqdm(range(5), leave=False, position=1):
        time.sleep(sleep / 5)
    tqdm.write(str({"eval_loss": f"{network.validate():.4g}", "epoch": f"{epoch:.4g}"}))


def main() -> None:
    given = arguments(__doc__, epochs=3)
    network, truth = TinyNetwork(), Truth(given.truth)
    per_epoch = math.ceil(given.steps / given.epochs)
    total = per_epoch * given.epochs
    with tqdm(total=total) as bar:
        for step in range(1, total + 1):
            rate = 0.1 * (1 - step / total)
            loss = network.learn(rate)
            time.sleep(given.sleep)
            bar.update(1)
            truth.step(step)
            epoch = step / per_epoch
            if step % 10 == 0:
                logs = {"loss": loss, "grad_norm": 1.0, "learning_rate": rate, "epoch": epoch}
                tqdm.write(str({name: f"{value:.4g}" for name, value in logs.items()}))
                truth.loss(step, float(f"{loss:.4g}"))
            if step % per_epoch == 0:
                evaluate(network, epoch, given.sleep)
    print({"train_runtime": "1.0", "train_loss": "0.5", "epoch": str(given.epochs)}, flush=True)
    truth.save()


if __name__ == "__main__":
    main()
