"""A loop with a tqdm bar per epoch. It trains with torch where that is installed."""

import math
import time

from tiny_network import TinyNetwork, Truth, arguments
from tqdm import tqdm

try:
    import torch
except ImportError:
    torch = None


class TorchNetwork:
    """The same lesson as TinyNetwork, by torch on the CPU."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
        )
        self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=0.1)

    def learn(self, _rate: float) -> float:
        x = torch.rand(16, 1) * 2 - 1
        loss = ((self.layers(x) - torch.sin(3 * x)) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main() -> None:
    given = arguments(__doc__, epochs=3)
    network = TorchNetwork() if torch is not None else TinyNetwork()
    truth = Truth(given.truth)
    per_epoch = math.ceil(given.steps / given.epochs)
    step = 0
    for epoch in range(1, given.epochs + 1):
        with tqdm(range(per_epoch), desc=f"Epoch {epoch}/{given.epochs}") as bar:
            for _ in bar:
                loss = network.learn(0.1)
                time.sleep(given.sleep)
                step += 1
                truth.step(step)
                if step % 10 == 0:
                    bar.set_postfix(loss=f"{loss:.4f}", lr=0.1)
                    truth.loss(step, float(f"{loss:.4f}"))
    truth.save()


if __name__ == "__main__":
    main()
