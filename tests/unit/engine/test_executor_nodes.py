"""Machines that an executor offers: seen, drained, fenced, lost; and jobs placed on them."""

from dataclasses import replace

import pytest

from engine_yard import ANN
from runyard.domain import errors
from scripted_cluster import ScriptedCluster, worker
from scripted_executor import ScriptedExecutor
from scripted_machine import ScriptedMachine
from yards import until

ON_RAY = {"executor": "ray", "gpu_count": 1}


@pytest.fixture
def cluster(tmp_path):
    return ScriptedCluster(tmp_path / "cluster", [worker("w1", 2), worker("w2", 2)])


@pytest.fixture
def engine(make_engine, cluster):
    return make_engine(executor=cluster)


def gang(nodes, placement="spread", **more):
    return {**ON_RAY, "distributed": {"nodes": nodes, "placement": placement, **more}}


def offered(engine):
    return {node.name: node for node in engine.yard.nodes() if not node.is_server}


def measured(engine):
    """The executor is asked for its nodes again, as it is every few seconds."""
    engine.yard.runtime._measuring.wake()


def grants(engine):
    """(machine, kind, resource) as the store has them, past the engine."""
    with engine.store.read() as reader:
        return sorted(
            (part.machine_id, *what)
            for attempt in reader.active_attempts()
            for part in attempt.slices
            for what in (
                *(("gpu", grant.uuid) for grant in part.gpus),
                *(("port", str(port)) for port in part.ports),
            )
        )


def test_nodes_of_an_executor_are_nodes_of_their_own(engine):
    """R34, R51"""
    found = offered(engine)
    assert set(found) == {"w1", "w2"}
    first = found["w1"]
    assert (first.kind, first.address, first.cluster, first.alive) == (
        "ray",
        "w1.example",
        "east",
        True,
    )
    assert (first.capacity.cpu_milli, first.capacity.memory_mb) == (8000, 32 * 1024)
    assert first.executors == ("ray",)
    assert first.heartbeat_at > 0
    assert len({node.node_id for node in found.values()}) == 2
    names = {(view.node_id, view.uuid) for view in engine.yard.gpus()}
    assert (first.node_id, "w1-gpu-1") in names
    assert len(names) == 4


def test_a_node_has_the_same_id_after_a_restart(engine):
    before = {node.node_id for node in offered(engine).values()}
    engine.restart()
    assert {node.node_id for node in offered(engine).values()} == before


def test_a_job_runs_on_a_node_with_what_it_was_granted_there(engine, cluster):
    ref = engine.submit(**ON_RAY, ports=1)
    engine.wait(ref, "running")
    [attempt] = engine.attempts(ref)
    [part] = attempt.slices
    node = offered(engine)[part.node]
    assert (attempt.executor, attempt.node_id) == ("ray", "node-1")
    assert (part.machine_id, part.node_id, part.cluster) == (node.node_id, node.node_id, "east")
    assert len(part.gpus) == len(part.ports) == 1
    launch = cluster.launches[attempt.attempt_id]
    [handed] = launch.slices
    assert (handed.node, handed.ranks, handed.gpu_ids) == (
        part.node,
        (),
        (part.gpus[0].uuid,),
    )
    assert launch.env["RUNYARD_PORT_0"] == str(part.ports[0])
    [held] = [view for view in engine.yard.gpus() if view.jobs]
    assert (held.node_id, held.uuid) == (node.node_id, part.gpus[0].uuid)
    assert held.jobs[0]["job_id"] == ref


def test_a_gang_gets_all_its_nodes_in_one_commit(engine, cluster):
    """R34: GPUs and ports are rows of the nodes' machines, handed over with the ranks' world."""
    ref = engine.submit(**gang(2, procs_per_node=2))
    engine.wait(ref, "running")
    [attempt] = engine.attempts(ref)
    assert [part.index for part in attempt.slices] == [0, 1]
    assert {part.node for part in attempt.slices} == {"w1", "w2"}
    held = grants(engine)
    assert len([row for row in held if row[1] == "gpu"]) == 2
    assert len([row for row in held if row[1] == "port"]) == 1
    launch = cluster.launches[attempt.attempt_id]
    first, second = launch.slices
    assert [rank.rank for part in launch.slices for rank in part.ranks] == [0, 1, 2, 3]
    master = {
        (rank.env["MASTER_ADDR"], rank.env["MASTER_PORT"])
        for part in launch.slices
        for rank in part.ranks
    }
    port = attempt.slices[0].ports[-1]
    assert master == {(attempt.slices[0].address, str(port))}
    assert first.gpu_ids != second.gpu_ids
    assert {rank.env["WORLD_SIZE"] for rank in second.ranks} == {"4"}


def test_what_does_not_fit_whole_takes_nothing_and_says_what_is_missing(engine):
    """R33, R34"""
    holder = engine.running(**ON_RAY)
    ref = engine.submit(**{**gang(2), "gpu_count": 2})
    params = engine.wait_reason(ref, "not_enough_nodes")
    assert (params["wanted"], params["free"], params["total"]) == (2, 1, 2)
    assert params["each"]["gpu"] == 2
    assert len([row for row in grants(engine) if row[1] == "gpu"]) == 1
    engine.finish(holder)
    engine.wait(ref, "running")  # at once: nothing else wakes the scheduler here


def test_what_was_lost_with_its_node_is_not_placed_there_again(engine, cluster):
    """R30: what the executor knows by then counts, not what was measured before."""
    ref = engine.running(**ON_RAY, max_retries=1)
    [before] = engine.attempts(ref)[0].slices
    cluster.offered = [one for one in cluster.offered if one.name != before.node]
    engine.finish(ref, None, cause="supervisor_lost")
    until(lambda: engine.job(ref).attempt_number == 2)
    [after] = engine.attempts(ref)[1].slices
    assert after.node != before.node


def test_a_gang_larger_than_the_cluster_says_so(engine):
    ref = engine.submit(**gang(3))
    params = engine.wait_reason(ref, "never_fits")
    assert (params["resource"], params["wanted"], params["largest"]) == ("node", 3, 2)


def test_end_release_and_the_next_gang_are_one_commit(engine):
    first = engine.running(**{**gang(2), "gpu_count": 2})
    second = engine.submit(**{**gang(2), "gpu_count": 2})
    engine.wait_reason(second, "not_enough_nodes")
    engine.finish(first)
    engine.wait(second, "running")
    assert engine.status(first) == "completed"
    engine.finish(second)
    engine.wait(second, "completed")
    assert grants(engine) == []


def test_a_drained_node_takes_nothing_more(engine):
    running = engine.running(**ON_RAY)
    [part] = engine.attempts(running)[0].slices
    changed = engine.yard.drain(part.node, ANN)
    assert changed.drained
    assert offered(engine)[part.node].drained
    for _ in range(2):
        ref = engine.running(**ON_RAY)
        assert engine.attempts(ref)[0].slices[0].node != part.node
    ref = engine.submit(**ON_RAY)
    engine.wait_reason(ref, "not_enough")
    assert engine.status(running) == "running"  # what runs there is left alone
    engine.yard.undrain(part.node, ANN)
    engine.wait(ref, "running")


def test_a_drain_survives_a_restart(engine):
    engine.yard.drain("w1", ANN)
    engine.restart()
    assert offered(engine)["w1"].drained
    for _ in range(2):
        ref = engine.running(**ON_RAY)
        assert engine.attempts(ref)[0].slices[0].node == "w2"


def test_a_fenced_gpu_of_a_node_gets_no_job(engine):
    node = offered(engine)["w1"]
    view = engine.yard.fence("w1:1", "its fan is broken", ANN)
    assert (view.node_id, view.uuid, view.fenced) == (node.node_id, "w1-gpu-1", True)
    ref = engine.submit(**{**gang(2), "gpu_count": 2})
    assert engine.wait_reason(ref, "not_enough_nodes")["free"] == 1
    engine.yard.unfence("w1-gpu-1", ANN)
    engine.yard.runtime.wake()
    engine.wait(ref, "running")
    with pytest.raises(errors.NotFound):
        engine.yard.fence("w1:7", "", ANN)


def test_a_dead_node_is_marked_and_never_refilled(engine, cluster):
    """Its grants stay until the executor tells the end of what ran there."""
    ref = engine.running(**{**gang(2), "gpu_count": 2})
    before = grants(engine)
    cluster.offered[0] = replace(cluster.offered[0], alive=False)
    measured(engine)
    until(lambda: not offered(engine)["w1"].alive)
    assert offered(engine)["w1"].executors == ()
    assert grants(engine) == before
    waiting = engine.submit(**ON_RAY)
    engine.wait_reason(waiting, "not_enough")
    engine.finish(ref, None, signal=9, cause="node_lost")
    engine.wait(waiting, "running")
    assert engine.attempts(waiting)[0].slices[0].node == "w2"
    cluster.offered[0] = replace(cluster.offered[0], alive=True)
    measured(engine)
    until(lambda: offered(engine)["w1"].alive)
    again = engine.running(**{**ON_RAY, "gpu_count": 2})
    assert engine.attempts(again)[0].slices[0].node == "w1"


def test_a_node_that_is_told_no_more_is_dead_too(engine, cluster):
    del cluster.offered[0]
    measured(engine)
    until(lambda: not offered(engine)["w1"].alive)
    ref = engine.submit(**gang(2))
    assert engine.wait_reason(ref, "never_fits")["largest"] == 1
    cluster.offered.clear()
    measured(engine)
    until(lambda: not offered(engine)["w2"].alive)
    assert engine.wait_reason(ref, "executor_unavailable") == {"executor": "ray"}


def test_an_executor_that_does_not_answer_takes_nothing_and_buries_nobody(engine, cluster):
    """Nodes are not dead because the way to them is cut."""
    ref = engine.running(**ON_RAY)
    cluster.reachable = False
    measured(engine)
    until(lambda: not any(node.executors for node in engine.parts.machine.offered))
    waiting = engine.submit(**ON_RAY)
    engine.wait_reason(waiting, "executor_unavailable")
    assert {node.alive for node in offered(engine).values()} == {True}
    assert engine.status(ref) == "running"
    cluster.reachable = True
    measured(engine)
    engine.wait(waiting, "running")


def test_local_and_a_cluster_on_one_server(make_engine, cluster, tmp_path):
    """A job's executor says where; auto takes what has the GPUs it wants."""
    local = ScriptedExecutor(tmp_path / "here")
    engine = make_engine(executor=local, others=(cluster,))
    here = engine.submit(executor="local")
    there = engine.submit(executor="ray")
    anywhere = engine.submit(gpu_count=1)
    plain = engine.submit()
    for ref in (here, there, anywhere, plain):
        engine.wait(ref, "running")
    chosen = {ref: engine.attempts(ref)[0] for ref in (here, there, anywhere, plain)}
    assert (chosen[here].executor, chosen[here].slices) == ("local", ())
    assert chosen[there].executor == chosen[anywhere].executor == "ray"
    assert chosen[plain].executor == "local"
    server = [node for node in engine.yard.nodes() if node.is_server]
    assert [node.executors for node in server] == [("local",)]


def test_an_executor_that_offers_this_very_machine_shares_its_account(make_engine, tmp_path):
    """The GPUs of a Ray that runs here are the server's own: nobody gets them twice."""
    here = worker("here", 0)
    here = replace(here, gpus=worker("x", 2).gpus)
    machine = ScriptedMachine(gpu_count=2)
    gpus = tuple(
        replace(gpu, uuid=own.uuid) for gpu, own in zip(here.gpus, machine.gpus(), strict=True)
    )
    cluster = ScriptedCluster(tmp_path / "cluster", [replace(here, gpus=gpus)])
    local = ScriptedExecutor(tmp_path / "local")
    engine = make_engine(executor=local, others=(cluster,), machine=machine)
    first = engine.running(executor="local", gpu_count=1)
    second = engine.running(executor="ray", gpu_count=1)
    third = engine.submit(executor="ray", gpu_count=1)
    engine.wait_reason(third, "not_enough")
    uuids = {grant.uuid for ref in (first, second) for grant in engine.attempts(ref)[0].gpus}
    assert len(uuids) == 2


def test_defaults_of_a_server_without_jobs_of_its_own_come_from_its_nodes(engine):
    """A fair share of what the cluster has: a GPU where there are GPUs."""
    ref = engine.submit(executor="auto", gpu_count=None, cpu_cores=None, memory_gb=None)
    request = engine.job(ref).spec.request
    assert (request.gpu_milli, request.cpu_milli) == (1000, 2000)


def test_a_launch_that_fails_gives_everything_back(engine, cluster):
    cluster.failure = OSError("no route")
    ref = engine.submit(**gang(2))
    engine.wait(ref, "retrying")
    assert grants(engine) == []
    cluster.failure = None
    engine.let_time_pass(lambda: engine.status(ref) == "running")


def test_adopted_after_a_restart_with_its_slices(engine, cluster):
    """R50: the cluster goes on while no server runs."""
    ref = engine.running(**gang(2))
    before = engine.attempts(ref)[0]
    engine.restart()
    assert engine.status(ref) == "running"
    assert engine.attempts(ref)[0].slices == before.slices
    held = grants(engine)
    assert len(held) == 3
    cluster.finish(before.attempt_id, 0, tell=False)
    engine.restart()
    engine.wait(ref, "completed")
    assert grants(engine) == []
