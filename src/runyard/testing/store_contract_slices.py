"""Attempts on nodes of executors: their slices and grants, and who owns them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from runyard.domain import errors
from runyard.domain.distributed import Distributed
from runyard.domain.job import Job
from runyard.domain.resources import GpuGrant
from runyard.domain.slices import Gang, Slice
from runyard.domain.states import LIVE, AttemptStatus
from runyard.stores.base import Store
from runyard.stores.base_machines import Node
from runyard.testing.store_samples import START, new_job, node, place, submit, submit_one


def _slice(index: int, machine: str, *gpus: int, milli: int = 1000, port: int = 38000) -> Slice:
    return Slice(
        index=index,
        machine_id=machine,
        node=f"name of {machine}",
        address="10.0.0.7",
        gpus=tuple(GpuGrant(f"GPU-{gpu}", gpu, milli) for gpu in gpus),
        ports=(port,),
        node_id=machine,
        cluster="east",
    )


def _offered(**changes: Any) -> Node:
    plain = node(
        node_id="ray-1",
        name="worker-1",
        machine_id="ray-1",
        kind="ray",
        address="10.0.0.7",
        labels={"pool": "large", "zone": "b"},
        cluster="east",
        executors=("ray",),
    )
    return replace(plain, **changes)


class SliceContract:
    def test_a_node_of_an_executor_comes_back_exactly(self, store: Store) -> None:
        known = _offered(alive=False)
        store.write(lambda tx: tx.put_node(known))
        store.write(lambda tx: tx.put_node(node()))
        with store.read() as reader:
            assert reader.nodes() == [node(), known]
            assert [found.is_server for found in reader.nodes()] == [True, False]
        store.write(lambda tx: tx.set_drained("ray-1", True))
        store.write(lambda tx: tx.put_node(_offered(heartbeat_at=START + 5)))
        with store.read() as reader:
            assert reader.nodes()[1] == _offered(heartbeat_at=START + 5, drained=True)

    def test_slices_come_back_exactly(self, store: Store) -> None:
        parts = (_slice(0, "ray-1", 0, 1), _slice(1, "ray-2", 0))
        job = submit_one(store)
        attempt = store.write(lambda tx: place(tx, job, executor="ray", slices=parts))
        with store.read() as reader:
            assert reader.attempt(attempt.attempt_id) == attempt
            assert reader.attempt(attempt.attempt_id).slices == parts  # type: ignore[union-attr]
            assert reader.live_attempts() == [attempt]
            [active] = reader.active_attempts()
        assert active.slices == parts

    def test_each_slice_holds_what_it_has_on_its_own_machine(self, store: Store) -> None:
        """The same GPU and port on two machines are two; on one they are granted once."""
        first, second, third = submit(store, new_job(), new_job(), new_job())
        both = (_slice(0, "ray-1", 0), _slice(1, "ray-2", 0))
        assert _can_place(store, first, both)
        assert not _can_place(store, second, (_slice(0, "ray-3", 0), _slice(1, "ray-2", 0)))
        assert _can_place(store, second, (_slice(0, "ray-3", 0), _slice(1, "ray-4", 0)))
        store.write(lambda tx: tx.release_grants(first.attempt_id(1)))
        assert _can_place(store, third, both)

    def test_a_placement_that_fails_on_one_machine_takes_nothing_anywhere(
        self, store: Store
    ) -> None:
        first, second, third = submit(store, new_job(), new_job(), new_job())
        assert _can_place(store, first, (_slice(0, "ray-2", 0),))
        assert not _can_place(store, second, (_slice(0, "ray-1", 0), _slice(1, "ray-2", 0)))
        assert _can_place(store, third, (_slice(0, "ray-1", 0),))

    def test_two_slices_on_one_machine_may_share_a_gpu(self, store: Store) -> None:
        first, second = submit(store, new_job(), new_job())
        halves = (
            _slice(0, "ray-1", 0, milli=500, port=38000),
            _slice(1, "ray-1", 0, milli=500, port=38001),
        )
        assert _can_place(store, first, halves)
        assert not _can_place(store, second, (_slice(0, "ray-1", 0, milli=1, port=38002),))

    def test_of_many_gangs_that_want_the_same_nodes_one_wins(self, store: Store) -> None:
        """Also when they name the machines in another order."""
        jobs = submit(store, *(new_job() for _ in range(8)))
        ready = threading.Barrier(8)
        names = ["ray-1", "ray-2", "ray-3"]

        def race(number: int) -> bool:
            turned = names[number % 3 :] + names[: number % 3]
            parts = tuple(_slice(index, name, 0) for index, name in enumerate(turned))
            ready.wait(30)
            return _can_place(store, jobs[number], parts)

        with ThreadPoolExecutor(8) as racers:
            assert sum(racers.map(race, range(8))) == 1

    def test_distributed_jobs_wait_in_shapes_of_their_own(self, store: Store) -> None:
        two, spread = Distributed(nodes=2), Distributed(nodes=2, placement="spread")
        jobs = submit(
            store,
            new_job(),
            new_job(distributed=two),
            new_job(distributed=two),
            new_job(distributed=spread),
            new_job(distributed=Distributed(nodes=3)),
        )
        assert len({job.shape_id for job in jobs}) == 4
        assert jobs[1].shape_id == jobs[2].shape_id
        with store.read() as reader:
            gangs = {shape.id: shape.gang for shape in reader.waiting_shapes()}
        assert gangs[jobs[0].shape_id] is None
        assert gangs[jobs[1].shape_id] == Gang(2, "pack")
        assert gangs[jobs[3].shape_id] == Gang(2, "spread")
        assert gangs[jobs[4].shape_id] == Gang(3, "pack")

    def test_a_node_is_forgotten_only_when_nothing_is_held_there(self, store: Store) -> None:
        store.write(lambda tx: tx.put_node(_offered(alive=False)))
        store.write(lambda tx: tx.put_node(node()))
        job = submit_one(store)
        attempt = store.write(lambda tx: place(tx, job, slices=(_slice(0, "ray-1", 0),)))
        assert not store.write(lambda tx: tx.drop_node("ray-1"))
        assert not store.write(lambda tx: tx.drop_node("node-1"))  # a server is never dropped
        store.write(lambda tx: tx.release_grants(attempt.attempt_id))
        assert store.write(lambda tx: tx.drop_node("ray-1"))
        assert not store.write(lambda tx: tx.drop_node("ray-1"))
        with store.read() as reader:
            assert reader.nodes() == [node()]

    def test_an_attempt_has_one_owner_who_gives_it_up_once(self, store: Store) -> None:
        job = submit_one(store)
        attempt = store.write(lambda tx: place(tx, job, node_id="dead"))
        name = attempt.attempt_id
        assert not store.write(lambda tx: tx.take_over(name, "other", "me"))
        assert store.write(lambda tx: tx.take_over(name, "dead", "me"))
        assert not store.write(lambda tx: tx.take_over(name, "dead", "another"))
        with store.read() as reader:
            assert reader.live_attempts("me") == [replace(attempt, node_id="me")]
            assert reader.live_attempts("dead") == []
        gone = {"status": AttemptStatus.ENDED}
        store.write(lambda tx: tx.update_attempt(name, LIVE, **gone))
        assert not store.write(lambda tx: tx.take_over(name, "me", "another"))

    def test_of_many_who_take_over_exactly_one_does(self, store: Store) -> None:
        job = submit_one(store)
        attempt = store.write(lambda tx: place(tx, job, node_id="dead"))
        ready = threading.Barrier(8)

        def race(number: int) -> bool:
            ready.wait(30)
            name = attempt.attempt_id
            return store.write(lambda tx: tx.take_over(name, "dead", f"server-{number}"))

        with ThreadPoolExecutor(8) as racers:
            assert sum(racers.map(race, range(8))) == 1

    def test_only_a_server_that_stayed_silent_is_deposed(self, store: Store) -> None:
        """Its epoch tells it; a beat in between saves it."""
        store.write(lambda tx: tx.put_node(node(epoch=3)))
        assert not store.write(lambda tx: tx.depose_node("node-1", START - 1))
        assert not store.write(lambda tx: tx.depose_node("nothing", START))
        assert store.write(lambda tx: tx.depose_node("node-1", START))
        with store.read() as reader:
            assert reader.nodes() == [node(epoch=4)]


def _can_place(store: Store, job: Job, parts: tuple[Slice, ...]) -> bool:
    try:
        store.write(lambda tx: place(tx, job, executor="ray", slices=parts))
    except errors.StaleWrite:
        return False
    return True
