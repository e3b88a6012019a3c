"""An entry point of Ray Jobs that starts a gang by itself, as programs on Ray do: a placement
group over two nodes, and its ranks in it."""

from __future__ import annotations

import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

NODES, PER_NODE = 2, 2


@ray.remote(num_cpus=0)
def run_rank(rank: int, command: list[str]) -> int:
    return subprocess.run([*command, str(rank)], check=False).returncode


def main() -> None:
    ray.init(address="auto", logging_level="ERROR")
    bundles = [{"CPU": 0.1, "GPU": float(PER_NODE)}] * NODES
    group = placement_group(bundles, strategy="STRICT_SPREAD")
    ray.get(group.ready())
    ranks = []
    for rank in range(NODES * PER_NODE):
        where = PlacementGroupSchedulingStrategy(group, rank // PER_NODE)
        options = run_rank.options(num_gpus=1, scheduling_strategy=where)
        ranks.append(options.remote(rank, sys.argv[1:]))
    ray.get(ranks)


if __name__ == "__main__":
    main()
