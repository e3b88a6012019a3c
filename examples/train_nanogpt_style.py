"""A loop that prints as nanoGPT does, which never says how many iterations there will be."""

import time

from tiny_network import TinyNetwork, Truth, arguments


def main() -> None:
    given = arguments(__doc__, max_iters=0)
    steps = given.max_iters or given.steps
    network, truth = TinyNetwork(), Truth(given.truth)
    for step in range(1, steps + 1):
        began = time.perf_counter()
        loss = network.learn(0.1)
        time.sleep(given.sleep)
        truth.step(step)
        spent = (time.perf_counter() - began) * 1000
        print(f"iter {step}: loss {loss:.4f}, time {spent:.2f}ms, mfu -100.00%", flush=True)
        truth.loss(step, float(f"{loss:.4f}"))
        if step % 50 == 0:
            held_out = network.validate()
            print(f"step {step}: train loss {loss:.4f}, val loss {held_out:.4f}", flush=True)
    truth.save()


if __name__ == "__main__":
    main()
