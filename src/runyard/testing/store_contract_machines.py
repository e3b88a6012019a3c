"""Nodes, fences, keys, flags and answers to repeated requests."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from runyard.domain import errors
from runyard.domain.resources import Capacity, Gpu, Holder, Load
from runyard.stores.base import Key, Store, Transaction
from runyard.testing.store_samples import START, new_job, node, submit_one


class MachineContract:
    def test_a_node_comes_back_exactly(self, store: Store) -> None:
        gpus = (
            Gpu(0, "GPU-1", "H200", 141_000, "numa0", True, (Holder(7, "anna", "python"),), True),
            Gpu(1, "GPU-2", "H200", 141_000),
        )
        known = node(
            capacity=Capacity(64_000, 512_000, gpus, 40_000, 10), load=Load(1.5, 20.0, 99.9)
        )
        store.write(lambda tx: tx.put_node(known))
        with store.read() as reader:
            assert reader.nodes() == [known]

    def test_putting_a_node_again_replaces_all_but_the_drain(self, store: Store) -> None:
        store.write(lambda tx: tx.put_node(node()))
        assert store.write(lambda tx: tx.set_drained("node-1", True))
        assert not store.write(lambda tx: tx.set_drained("nothing", True))
        newer = node(epoch=2, heartbeat_at=START + 5, url="http://127.0.0.1:1", drained=False)
        store.write(lambda tx: tx.put_node(newer), durable=False)
        store.write(lambda tx: tx.put_node(node(node_id="node-2", drained=True)))
        with store.read() as reader:
            first, second = reader.nodes()
        assert first == replace(newer, drained=True)
        assert second.drained
        assert store.write(lambda tx: tx.set_drained("node-1", False))
        with store.read() as reader:
            assert not reader.nodes()[0].drained

    def test_fences_belong_to_a_machine(self, store: Store) -> None:
        store.write(lambda tx: tx.fence_gpu("m1", "GPU-1", "fan", START))
        store.write(lambda tx: tx.fence_gpu("m1", "GPU-1", "fan broken", START))
        store.write(lambda tx: tx.fence_gpu("m2", "GPU-1", "other", START))
        with store.read() as reader:
            assert reader.fenced_gpus("m1") == {"GPU-1": "fan broken"}
        assert store.write(lambda tx: tx.unfence_gpu("m1", "GPU-1"))
        assert not store.write(lambda tx: tx.unfence_gpu("m1", "GPU-1"))
        with store.read() as reader:
            assert reader.fenced_gpus("m1") == {}
            assert reader.fenced_gpus("m2") == {"GPU-1": "other"}

    def test_keys_are_found_by_their_digest(self, store: Store) -> None:
        """What is kept of a key does not open anything."""
        wanted = Key(0, "anna", "admin", "ry_abc", START, None, START + 60, True)
        key = store.write(lambda tx: tx.insert_key(wanted, "d" * 64))
        other = store.write(
            lambda tx: tx.insert_key(Key(0, "bert", "viewer", "ry_x", START), "e" * 64)
        )
        assert key == replace(wanted, key_id=key.key_id)
        with store.read() as reader:
            assert reader.keys() == [key, other]
            assert reader.key_by_hash("d" * 64) == key
            assert reader.key_by_hash("f" * 64) is None
        with pytest.raises(errors.Conflict):
            store.write(lambda tx: tx.insert_key(wanted, "d" * 64))
        store.write(lambda tx: tx.touch_key(key.key_id, START + 5), durable=False)
        with store.read() as reader:
            assert reader.keys()[0].last_used_at == START + 5
        assert store.write(lambda tx: tx.revoke_key(key.key_id))
        assert not store.write(lambda tx: tx.revoke_key(key.key_id))
        with store.read() as reader:
            assert reader.key_by_hash("d" * 64) is None
            assert reader.keys() == [other]
        again = store.write(lambda tx: tx.insert_key(wanted, "d" * 64))
        assert again.key_id > other.key_id

    def test_flags(self, store: Store) -> None:
        for value in ("1", "2", None, None, "3", ""):
            store.write(lambda tx, value=value: tx.set_flag("dispatch_paused", value))  # type: ignore[misc]
            with store.read() as reader:
                assert reader.flag("dispatch_paused") == value
                assert reader.flag("other") is None

    def test_flags_that_begin_alike(self, store: Store) -> None:
        for name in ("read:job-1.1", "read:job-2.1", "reader", "other"):
            store.write(lambda tx, name=name: tx.set_flag(name, f"of {name}"))  # type: ignore[misc]
        with store.read() as reader:
            assert reader.flags("read:") == {
                "read:job-1.1": "of read:job-1.1",
                "read:job-2.1": "of read:job-2.1",
            }
            assert reader.flags("none") == {}

    def test_an_answer_is_kept_per_key_until_forgotten(self, store: Store) -> None:
        store.write(lambda tx: tx.put_idempotent(1, "k", "digest", "answer", START))
        store.write(lambda tx: tx.put_idempotent(2, "k", "other", "x", START + 10))
        with store.read() as reader:
            assert reader.idempotent(1, "k") == ("digest", "answer")
            assert reader.idempotent(2, "k") == ("other", "x")
            assert reader.idempotent(3, "k") is None
            assert reader.idempotent(1, "K") is None
        with pytest.raises(errors.StaleWrite):
            store.write(lambda tx: tx.put_idempotent(1, "k", "z", "z", START))
        assert store.write(lambda tx: tx.forget_idempotent(START + 10)) == 1
        with store.read() as reader:
            assert reader.idempotent(1, "k") is None
            assert reader.idempotent(2, "k") is not None

    def test_of_many_equal_requests_one_makes_the_job(self, store: Store) -> None:
        ready = threading.Barrier(8)

        def request(_: int) -> str:
            def work(tx: Transaction) -> str:
                known = tx.idempotent(1, "same")
                if known is not None:
                    return known[1]
                [job] = tx.insert_jobs([new_job()])
                tx.put_idempotent(1, "same", "digest", job.ref, START)
                return job.ref

            ready.wait(30)
            return store.write(work)

        with ThreadPoolExecutor(8) as clients:
            answers = set(clients.map(request, range(8)))
        assert len(answers) == 1
        with store.read() as reader:
            assert len(reader.events()) == 1

    def test_waking_others_does_not_wake_oneself(self, store: Store) -> None:
        woken: list[str] = []
        store.on_wake(woken.append)
        store.wake_others("queue")
        heard = threading.Event()
        store.subscribe(lambda _: heard.set())
        submit_one(store)
        assert heard.wait(60)
        assert woken == []
