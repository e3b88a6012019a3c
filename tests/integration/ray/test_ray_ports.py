"""Ports of nodes of a real Ray cluster that somebody else uses."""

from __future__ import annotations

import socket
import sys

from yards import POOL

# Rank 0 listens where all meet; the other comes there.
MEET = """
import os, socket, time
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    with socket.create_server(("", place[1])) as listener:
        listener.accept()[0].sendall(os.environ["RUNYARD_ATTEMPT_ID"].encode())
else:
    for _ in range(600):
        try:
            with socket.create_connection(place) as met:
                print("met", met.recv(100).decode(), flush=True)
                break
        except ConnectionRefusedError:
            time.sleep(0.1)
"""


def test_a_port_in_use_on_a_node_costs_nothing_but_the_placement(make_ray_yard):
    """R55: nothing of the job runs where its port is somebody else's: that attempt never started
    and is not charged; the next meets at another port."""
    with socket.create_server(("", POOL[0])):
        yard = make_ray_yard().start()
        shape = {"nodes": 2, "placement": "spread"}
        command = [sys.executable, "-c", MEET]
        ref = yard.submit(command, distributed=shape, max_retries=0)
        yard.wait(ref, "completed", seconds=120)
    first, *_, last = yard.attempts(ref)
    assert (first["end"], first["cause"]) == ("never_started", "port_taken")
    told = {"port": POOL[0], "node": first["slices"][0]["address"]}
    assert first["diagnosis"]["explanation"]["params"] == told
    assert yard.logs(ref, attempt=first["number"]) == []
    assert yard.logs(ref, attempt=last["number"], rank=1) == [f"met {last['attempt_id']}"]
    assert POOL[0] not in last["ports"]
    assert yard.job(ref)["charged"] == 0
