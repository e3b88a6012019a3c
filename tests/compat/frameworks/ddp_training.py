"""A real training of a small model by DistributedDataParallel over gloo: the same numbers however
many ranks and attempts it takes. Run by test_real_distributed.py.

Steps are counted over attempts; rank 0 saves every SAVE_EVERY. BREAK names a rank and a step at
which it dies, LEAVE those at which it stops taking part, in the first attempt only."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from runyard import report

STEPS = int(os.environ.get("STEPS", "40"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "10"))
BATCH = 8  # over all ranks


def batch(step, rank, world):
    """This rank's part of the batch, the same for every attempt."""
    made = torch.Generator().manual_seed(step)
    inputs = torch.randn(BATCH, 4, generator=made)
    wanted = inputs @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]])
    share = BATCH // world
    return inputs[rank * share :][:share], wanted[rank * share :][:share]


def resumed(model, optimizer):
    path = os.environ.get("RUNYARD_RESUME_FROM")
    if not path:
        return 0
    kept = torch.load(path)
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    return kept["step"]


def save(model, optimizer, step):
    path = f"{os.environ['RUNYARD_CHECKPOINT_DIR']}/step-{step}.pt"
    kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(kept, f"{path}.part")
    os.replace(f"{path}.part", path)
    report.checkpoint(path, step=step)


def strike(rank, step):
    if os.environ["RUNYARD_ATTEMPT"] != "1":
        return
    if os.environ.get("BREAK") == f"{rank}:{step}":
        print(f"rank {rank} dies at step {step}", flush=True)
        os.kill(os.getpid(), 9)
    if os.environ.get("LEAVE") == f"{rank}:{step}":
        left_the_collective()


def left_the_collective():
    while True:
        time.sleep(0.2)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    model = DistributedDataParallel(plain)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    begun = resumed(plain, optimizer)
    print(f"rank {rank} of {world} begins at step {begun}", flush=True)
    loss = torch.tensor(0.0)
    for step in range(begun, STEPS):
        strike(rank, step)
        inputs, wanted = batch(step, rank, world)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss)
        report.report(step=step + 1, total=STEPS, loss=loss.item() / world)
        if rank == 0 and (step + 1) % SAVE_EVERY == 0:
            save(plain, optimizer, step + 1)
        time.sleep(float(os.environ.get("SECONDS_PER_STEP", "0")))
    if rank == 0:
        print(f"final loss {loss.item() / world:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
