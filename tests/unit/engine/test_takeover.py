"""Several servers on one database that reach one cluster: they go on for each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from watched_store import WatchedStore

from engine_yard import ANN
from runyard.domain import errors
from scripted_cluster import ClusterView, ScriptedCluster, worker
from scripted_executor import ScriptedExecutor
from scripted_machine import ScriptedMachine
from yards import until

LEASE_S = 20.0  # longer than a busy machine lets any server wait
ON_RAY = {"executor": "ray", "gpu_count": 1}
GANG = {**ON_RAY, "distributed": {"nodes": 2, "placement": "spread"}}


@pytest.fixture
def cluster(tmp_path):
    return ScriptedCluster(tmp_path / "cluster", [worker("w1", 2), worker("w2", 2)])


@pytest.fixture
def server(postgres_url, make_engine, cluster):
    """Servers on machines of their own, one database, one cluster."""

    def make(name, **more):
        more.setdefault("executor", ClusterView(cluster))
        return make_engine(
            name,
            node_id=name,
            machine=ScriptedMachine(machine_id=f"machine of {name}"),
            database_url=postgres_url,
            server_lease_s=LEASE_S,
            **more,
        )

    return make


class Frozen(WatchedStore):
    """A store whose server is cut off from it while `cut` is set."""

    def __init__(self, store):
        super().__init__(store)
        self.cut = False
        self.before = self._check

    def _check(self, tx):  # noqa: ARG002
        if self.cut:
            raise errors.Unavailable("cut off")


def owner(engine, ref):
    return engine.attempts(ref)[-1].node_id


def silence(engine, name):
    """As if it had been heard of last long ago."""
    [node] = [node for node in engine.yard.nodes() if node.node_id == name]
    engine.store.write(lambda tx: tx.put_node(replace(node, heartbeat_at=node.heartbeat_at - 600)))


def taken(engine, ref, name):
    """Reconciling finds out, as it does every 30 s."""

    def look():
        if (holder := owner(engine, ref)) == name:
            return True
        if _heard(engine, holder):
            silence(engine, holder)
        engine.look()
        return False

    until(look, words=lambda: (owner(engine, ref), engine._seen(ref)), every=0.2)


def test_jobs_of_a_dead_server_go_on_under_another(server, cluster):
    """R55, R50: without a restart of the attempt, with one owner, and its end is recorded."""
    one = server("one")
    ref = one.running(**GANG)
    attempt = one.attempts(ref)[0]
    assert attempt.node_id == "one"
    two = server("two")
    one.close()
    taken(two, ref, "two")
    assert two.status(ref) == "running"
    [same] = two.attempts(ref)
    assert replace(same, node_id="one") == attempt
    assert cluster.running() == [attempt.attempt_id]
    assert "job_taken_over" in two.events(ref)
    cluster.finish(attempt.attempt_id, 0)
    two.wait(ref, "completed")
    follower = two.submit(**GANG)
    two.wait(follower, "running")


def test_a_cancel_asked_while_nobody_watched_arrives(server, cluster):
    one = server("one")
    ref = one.running(**ON_RAY)
    two = server("two")
    one.close()
    two.yard.cancel(ref, ANN)
    assert two.status(ref) == "cancelling"
    taken(two, ref, "two")
    two.look()
    two.wait(ref, "cancelled")
    assert cluster.running() == []


def test_what_was_placed_but_never_handed_over_starts_anew(server, cluster):
    """The server died between its commit and the hand-over: the attempt is refused on the whole
    cluster, and the next one starts."""
    one = server("one")
    cluster.losing = True
    ref = one.submit(**ON_RAY)
    one.wait(ref, "scheduled")
    two = server("two")
    one.close()
    cluster.losing = False
    taken(two, ref, "two")
    two.look(ahead=60)
    until(lambda: len(two.attempts(ref)) == 2 or two.look(), words=lambda: two._seen(ref))
    first, second = two.attempts(ref)
    assert (first.end, first.attempt_id in cluster.refused) == ("never_started", True)
    two.wait(ref, "running")
    assert cluster.running() == [second.attempt_id]


def test_a_server_that_was_only_cut_off_learns_that_others_took_over(server, cluster):
    """Fencing: it ends nothing and starts nothing of what is no longer its own."""
    stores = []

    def freezing(store):
        stores.append(Frozen(store))
        return stores[-1]

    one = server("one", wrap=freezing)
    ref = one.running(**ON_RAY)
    two = server("two")
    stores[0].cut = True
    taken(two, ref, "two")
    stores[0].cut = False
    attempt_id = two.attempts(ref)[0].attempt_id
    cluster.finish(attempt_id, 0)  # both hear of it
    two.wait(ref, "completed")
    ends = [code for code in two.events(ref) if code == "job_completed"]
    assert ends == ["job_completed"]
    epoch = next(node.epoch for node in two.yard.nodes() if node.node_id == "one")
    assert epoch == 2
    # It lives, takes new work, and is not silent any more.
    until(lambda: _heard(two, "one"))
    two.close()
    again = one.running(**ON_RAY)
    assert owner(one, again) == "one"


def test_exactly_one_of_several_takes_over(server, cluster):
    one = server("one")
    refs = [one.running(**ON_RAY) for _ in range(3)]
    two, three = server("two"), server("three")
    one.close()
    silence(two, "one")

    def all_taken():
        two.look()
        three.look()
        return "one" not in {owner(two, ref) for ref in refs}

    until(all_taken, every=0.1)
    for ref in refs:
        assert two.events(ref).count("job_taken_over") == 1
    for attempt_id in cluster.running():
        cluster.finish(attempt_id, 0)
    for ref in refs:
        two.wait(ref, "completed")


def test_attempts_on_another_machine_stay_with_their_server(server, tmp_path):
    """What ran on the dead server's own machine is not reached by anybody else."""
    one = server("one", executor=ScriptedExecutor(tmp_path / "one"))
    two = server("two")
    ref = one.running(executor="local")
    one.close()
    silence(two, "one")
    two.look()
    two.yard.cancel(ref, ANN)
    until(lambda: two.reason(ref)[0] == "node_unreachable" or two.look(), every=0.1)
    assert (two.status(ref), owner(two, ref)) == ("cancelling", "one")


def test_a_server_that_reaches_another_cluster_takes_nothing(server, cluster, tmp_path):
    west = ScriptedCluster(tmp_path / "west", [worker("w1", 2, cluster="west")])
    one = server("one")
    ref = one.running(**ON_RAY)
    one.close()
    two = server("two", executor=west)
    silence(two, "one")
    two.look()
    two.yard.cancel(ref, ANN)
    until(lambda: two.reason(ref)[0] == "node_unreachable" or two.look(), every=0.1)
    assert owner(two, ref) == "one"
    assert cluster.running()


def test_a_waiting_job_is_prepared_anew_when_its_files_died_with_a_server(server, tmp_path):
    """What was fetched lies on the disk of a server that is gone: another one fetches it again."""
    one = server("one", executor=ScriptedExecutor(tmp_path / "one"), max_concurrent=1)
    blocker = one.running(executor="local")
    ref = one.submit(executor="local", prefetch=["http://127.0.0.1:9/model.bin"])
    until(lambda: f"{ref}.p1" in one.executor.launches)
    one.executor.finish(f"{ref}.p1")
    until(lambda: one.job(ref).ready)
    two = server("two", executor=ScriptedExecutor(tmp_path / "two"), max_concurrent=2)
    two.look()
    assert f"{ref}.p2" not in two.executor.launches
    one.close()
    silence(two, "one")
    until(lambda: f"{ref}.p2" in two.executor.launches or two.look(), every=0.1)
    two.executor.finish(f"{ref}.p2")
    two.wait(ref, "running")
    assert two.attempts(ref)[0].node_id == "two"
    assert two.status(blocker) == "running"  # nobody but its own server can tell


def test_both_servers_tell_the_same_nodes(server):
    one, two = server("one"), server("two")
    found = _offered(one)
    assert [node.name for node in sorted(found, key=lambda node: node.name)] == ["w1", "w2"]
    assert _offered(two) == found
    one.yard.drain("w1", ANN)
    for _ in range(2):
        ref = two.running(**ON_RAY)
        assert two.attempts(ref)[0].slices[0].node == "w2"


def _offered(engine):
    """Nodes that are no servers; when they were last heard of may differ between two questions."""
    found = [node for node in engine.yard.nodes() if not node.is_server]
    return [replace(node, heartbeat_at=None) for node in found]


def _heard(engine, name):
    [node] = [node for node in engine.yard.nodes() if node.node_id == name]
    return engine.store.now() - node.heartbeat_at < LEASE_S
