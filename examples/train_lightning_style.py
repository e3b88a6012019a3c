"""What Lightning leaves in a log: a bar per epoch, counted from 0 and without their number, a bar
of each validation below it, and a last line."""

import math
import time

from tiny_network import TinyNetwork, Truth, arguments
from tqdm import tqdm


def validate(network: TinyNetwork, sleep: float) -> float:
    bar = tqdm(range(5), desc="Validation DataLoader 0", leave=False, position=1)
    for _ in bar:
        time.sleep(sleep / 5)
    return network.validate()


def main() -> None:
    given = arguments(__doc__, max_epochs=3)
    network, truth = TinyNetwork(), Truth(given.truth)
    per_epoch = math.ceil(given.steps / given.max_epochs)
    print("GPU available: False, used: False", flush=True)
    step, shown = 0, {"v_num": 0}
    for epoch in range(given.max_epochs):
        with tqdm(total=per_epoch, desc=f"Epoch {epoch}") as bar:
            bar.set_postfix(shown, refresh=False)
            for _ in range(per_epoch):
                loss = network.learn(0.1)
                time.sleep(given.sleep)
                step += 1
                truth.step(step)
                shown["train_loss"] = f"{loss:.3f}"
                bar.set_postfix(shown, refresh=False)
                bar.update(1)
                truth.loss(step, float(f"{loss:.3f}"))
            shown["val_loss"] = f"{validate(network, given.sleep):.3f}"
            bar.set_postfix(shown)
    print(f"`Trainer.fit` stopped: `max_epochs={given.max_epochs}` reached.", flush=True)
    truth.save()


if __name__ == "__main__":
    main()
