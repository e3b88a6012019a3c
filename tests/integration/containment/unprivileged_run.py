"""Run by test_unprivileged.py as a user without rights: `unprivileged_run.py FOLDER SHAPE HOW`.

Prints one JSON object: the exit record, and whether all of the tree was dead by then.
"""

import json
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.environ["SOURCE"]]

from keeper_yard import Yard, wait_for  # noqa: E402

from runyard.supervisor import keeper_client, liveness, probe, reconcile  # noqa: E402


def cancel(yard, attempt_id, go):
    del go
    yard.stop(attempt_id, grace_s=0.2)


def main_exits(yard, attempt_id, go):
    del yard, attempt_id
    with open(go, "wb") as file:
        file.write(b"g")


def supervisor_dies(yard, attempt_id, go):
    del go
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGKILL)


def both_die(yard, attempt_id, go):
    del go
    supervisor = yard.supervisor_pid(attempt_id)
    os.kill(yard.keeper_pid(), signal.SIGKILL)
    wait_for(lambda: not keeper_client.keeper_locked(yard.data_dir), "the keeper's death")
    os.kill(supervisor, signal.SIGKILL)
    folder = yard.folder(attempt_id)
    wait_for(lambda: not liveness.supervisor_alive(folder), "the supervisor's death")
    reconcile.settle(folder)


def main():
    folder, shape, how = sys.argv[1:]
    ways = {f.__name__: f for f in (cancel, main_exits, supervisor_dies, both_die)}
    yard = Yard(folder)
    try:
        then = "exit" if how == "main_exits" else "stay"
        attempt_id, alive, go = yard.start_shape(shape, then)
        ways[how](yard, attempt_id, go)
        end = yard.wait_end(attempt_id)
        result = {"uid": os.getuid(), "end": end, "dead": alive.all_dead_now()}
    finally:
        yard.close()
    print(json.dumps({**result, "probe": probe.probe(folder)}))


if __name__ == "__main__":
    main()
