"""Joins a Ray cluster and evaluates expressions, one JSON string a line, for ray_cluster.py."""

import json
import os
import sys

import ray  # noqa: TID253 (this program is nothing but Ray)
from ray.util.placement_group import (  # noqa: TID253
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)


def actors():
    """Name -> pid of those in our namespace that live."""
    named = ray.util.list_named_actors(all_namespaces=True)
    found = {}
    for name in [row["name"] for row in named if row["namespace"] == "runyard"]:
        try:
            actor = ray.get_actor(name, namespace="runyard")
            found[name] = ray.get(actor.hello.remote(), timeout=20)["pid"]
        except (ValueError, ray.exceptions.RayError):
            found[name] = 0
    return {name: pid for name, pid in found.items() if pid or still(name)}


def still(name):
    rows = ray.util.list_named_actors(all_namespaces=True)
    return any(row["name"] == name for row in rows)


def groups():
    rows = placement_group_table().values()
    return sorted(row["name"] for row in rows if row["state"] != "REMOVED")


def kill(name):
    ray.kill(ray.get_actor(name, namespace="runyard"), no_restart=True)


def end(name):
    """As an actor ends that is told to end itself."""
    ray.get_actor(name, namespace="runyard").__ray_terminate__.remote()


def remove(name):
    remove_placement_group(get_placement_group(name))


def make_group(name, gpus):
    made = placement_group([{"CPU": 0.01, "GPU": gpus}], name=name, lifetime="detached")
    return made.wait(10)


class Idle:
    def hello(self):
        return {"pid": os.getpid()}


def make_actor(name):
    options = {"name": name, "namespace": "runyard", "lifetime": "detached", "num_cpus": 0.01}
    actor = ray.remote(Idle).options(**options).remote()
    return ray.get(actor.hello.remote(), timeout=60)["pid"]


def main(address):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Ray prints what happens to nodes
    ray.init(address=address, namespace="runyard", log_to_driver=False, configure_logging=False)
    for line in sys.stdin:
        try:
            answer = {"value": eval(json.loads(line), globals())}
            json.dumps(answer)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
