"""Run by tests as a user without rights: `unprivileged_run.py FOLDER HOW [SHAPE]`.

Prints one JSON object: the exit record, and what the way it was ended adds to it.
"""

import json
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.environ["SOURCE"]]

import refused_calls  # noqa: E402
from keeper_yard import Yard, wait_for  # noqa: E402

from runyard.supervisor import (  # noqa: E402
    keeper_client,
    liveness,
    probe,
    process_table,
    reconcile,
    stop_request,
)


def cancel(yard, shape):
    attempt_id, alive, _ = yard.start_shape(shape)
    yard.stop(attempt_id, grace_s=0.2)
    return ended(yard, attempt_id, alive)


def cancel_with_group(yard, shape):
    attempt_id, alive, _ = yard.start_shape(shape, cgroup=True)
    with open(f"/proc/{yard.journal(attempt_id).job['pid']}/cgroup") as file:
        joined = file.read()
    yard.stop(attempt_id, grace_s=0)
    group = yard.journal(attempt_id).group
    return {**ended(yard, attempt_id, alive), "group": group, "joined": joined}


def main_exits(yard, shape):
    attempt_id, alive, go = yard.start_shape(shape, "exit")
    with open(go, "wb") as file:
        file.write(b"g")
    return ended(yard, attempt_id, alive)


def supervisor_dies(yard, shape):
    attempt_id, alive, _ = yard.start_shape(shape)
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGKILL)
    return ended(yard, attempt_id, alive)


def both_die(yard, shape):
    attempt_id, alive, _ = yard.start_shape(shape)
    supervisor = yard.supervisor_pid(attempt_id)
    os.kill(yard.keeper_pid(), signal.SIGKILL)
    wait_for(lambda: not keeper_client.keeper_locked(yard.data_dir), "the keeper's death")
    os.kill(supervisor, signal.SIGKILL)
    folder = yard.folder(attempt_id)
    wait_for(lambda: not liveness.supervisor_alive(folder), "the supervisor's death")
    reconcile.settle(folder)
    return ended(yard, attempt_id, alive)


def ended(yard, attempt_id, alive):
    return {"end": yard.wait_end(attempt_id), "dead": alive.all_dead_now()}


def read_only_while_running(yard):
    """The folder can no longer be written to; the journal is open and stays so."""
    attempt_id, alive, _ = yard.start_shape("setsid_child")
    folder = yard.folder(attempt_id)
    os.chmod(folder, 0o500)
    try:
        yard.stop(attempt_id)
        asked = True
    except PermissionError:
        asked = False
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGTERM)
    end = wait_for(lambda: yard.journal(attempt_id).exit, "the end")
    seen = {"end": end, "dead": alive.all_dead_now(), "asked": asked}
    os.chmod(folder, 0o700)
    return seen


def read_only_from_the_start(yard):
    """Nothing runs whose identity cannot be recorded; the record comes when it can be written."""
    attempt_id = yard.prepare(["/bin/echo", "ran"])
    folder = yard.folder(attempt_id)
    os.chmod(f"{folder}/journal", 0o400)
    os.chmod(folder, 0o500)
    yard.keeper.run(attempt_id)
    other = yard.start(["/bin/sh", "-c", "exit 3"])
    code = yard.wait_end(other)["code"]
    before = yard.journal(attempt_id).exit
    os.chmod(folder, 0o700)
    os.chmod(f"{folder}/journal", 0o600)
    end = yard.wait_end(attempt_id)
    return {"end": end, "before": before, "other": code, "log": yard.log(attempt_id).decode()}


def becomes_root(yard):
    """With PROGRAM, which has the set-user-id bit, where the job may gain rights or not."""
    allowed = os.environ["ALLOWED"] == "yes"
    script = (
        '"$PROGRAM" --reuid=0 sh -c "id -u; exec sleep 600" & wait $!; echo refused; sleep 600'
    )
    attempt_id = yard.start(
        ["/bin/sh", "-c", script],
        env={"PROGRAM": os.environ["PROGRAM"]},
        no_new_privs=not allowed,
    )
    awaited = b"0\n" if allowed else b"refused\n"
    wait_for(lambda: awaited in yard.log(attempt_id), "the program")
    if allowed:
        wait_for(lambda: roots_sleep(yard.supervisor_pid(attempt_id)), "root's sleep")
    yard.stop(attempt_id, grace_s=0)
    if allowed:
        stuck = yard.hear(attempt_id, "stuck")["processes"]
        record = yard.journal(attempt_id)
        print(json.dumps({"stuck": stuck, "ended": record.exit is not None}), flush=True)
    return {"end": yard.wait_end(attempt_id, timeout=60), "log": yard.log(attempt_id).decode()}


def roots_sleep(supervisor):
    seen = map(process_table.describe, process_table.descendants(supervisor))
    return any((one["comm"], one["uid"]) == ("sleep", 0) for one in seen)


def without_pidfds(yard):
    """The supervisor cannot be nudged: it finds the request at its next heartbeat."""
    attempt_id, alive, _ = yard.start_shape("double_fork_daemon")
    nudged = yard.stop(attempt_id, grace_s=0.2)
    assert stop_request.read(yard.folder(attempt_id)) is not None
    return {**ended(yard, attempt_id, alive), "nudged": nudged}


def main():
    folder, how, *arguments = sys.argv[1:]
    refused = os.environ.get("REFUSED")
    if refused:
        getattr(refused_calls, refused)()
    yard = Yard(folder)
    try:
        result = globals()[how](yard, *arguments)
    finally:
        yard.close()
    print(json.dumps({**result, "uid": os.getuid(), "probe": probe.probe(folder)}))


if __name__ == "__main__":
    main()
