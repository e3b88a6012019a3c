"""A job whose last attempt failed on a GPU gets another one, where there is one."""

from dataclasses import replace

from runyard.domain import reasons
from runyard.domain.resources import GpuGrant


def avoiding(scene, shape, uuids, until=None):
    """The first job of the shape should not get these again."""
    view = scene.shapes[shape - 1]
    first = replace(view.jobs[0], avoid=frozenset(uuids), avoid_until=until)
    scene.shapes[shape - 1] = replace(view, jobs=(first, *view.jobs[1:]))


def given(decision):
    return {one.job_id: [grant.uuid for grant in one.gpus] for one in decision.placements}


def test_another_gpu_is_taken(scene, make_gpus):
    """R20."""
    scene.machine(gpus=make_gpus(2))
    shape, [job] = scene.waiting(gpu=1)
    avoiding(scene, shape, ["GPU-0"])
    assert given(scene.decide()) == {job: ["GPU-1"]}


def test_another_machine_is_taken(scene, make_gpus):
    scene.machine("m1", gpus=make_gpus(1))
    scene.machine("m2", gpus=make_gpus(1, first=1))
    shape, [job] = scene.waiting(gpu=1)
    avoiding(scene, shape, ["GPU-0"])
    assert given(scene.decide()) == {job: ["GPU-1"]}


def test_it_waits_for_another_and_says_so(scene, make_gpus):
    """The one it avoids is free, and stays free for others."""
    scene.machine(gpus=make_gpus(2))
    scene.running(gpus=[GpuGrant("GPU-1", 1, 1000)])
    shape, [job, behind] = scene.waiting(gpu=1, count=2)
    avoiding(scene, shape, ["GPU-0"], until=2000.0)
    decision = scene.decide(now=1000.0)
    assert given(decision) == {behind: ["GPU-0"]}
    assert decision.waits[shape].code == reasons.GPUS_AVOIDED
    assert decision.waits[shape].params == {"gpus": [0], "until": 2000.0, "fenced": []}
    assert job not in given(decision)


def test_those_behind_it_say_their_own_reason(scene, make_gpus):
    scene.machine(gpus=make_gpus(2))
    scene.running(gpus=[GpuGrant("GPU-0", 0, 1000), GpuGrant("GPU-1", 1, 1000)])
    shape, _ = scene.waiting(gpu=1, count=2)
    avoiding(scene, shape, ["GPU-0"])
    assert scene.decide().waits[shape].code == reasons.NOT_ENOUGH


def test_a_suspicion_is_given_up_after_a_while(scene, make_gpus):
    scene.machine(gpus=make_gpus(2))
    scene.running(gpus=[GpuGrant("GPU-1", 1, 1000)])
    shape, [job] = scene.waiting(gpu=1)
    avoiding(scene, shape, ["GPU-0"], until=2000.0)
    assert given(scene.decide(now=1999.0)) == {}
    assert given(scene.decide(now=2000.0)) == {job: ["GPU-0"]}


def test_where_there_is_no_other_it_gets_the_same(scene, make_gpus):
    scene.machine(gpus=make_gpus(2))
    shape, [job] = scene.waiting(gpu=2)
    avoiding(scene, shape, ["GPU-0", "GPU-1"])
    assert given(scene.decide()) == {job: ["GPU-0", "GPU-1"]}


def test_one_that_is_fenced_is_never_given_and_is_named(scene, make_gpus):
    scene.machine(gpus=make_gpus(1, fenced=True))
    shape, _ = scene.waiting(gpu=1)
    avoiding(scene, shape, ["GPU-0"])
    decision = scene.decide()
    assert given(decision) == {}
    assert decision.waits[shape].params == {"gpus": [0], "until": None, "fenced": [0]}


def test_a_fenced_one_is_nothing_to_wait_for(scene, make_gpus):
    """The only other one is fenced: better the same than none."""
    scene.machine(gpus=[*make_gpus(1), *make_gpus(1, first=1, fenced=True)])
    shape, [job] = scene.waiting(gpu=1)
    avoiding(scene, shape, ["GPU-0"])
    assert given(scene.decide()) == {job: ["GPU-0"]}


def test_other_lacks_are_told_as_ever(scene, make_gpus):
    scene.machine(cpu=2, gpus=make_gpus(2))
    scene.running(cpu=2)
    shape, _ = scene.waiting(gpu=1)
    avoiding(scene, shape, ["GPU-0"])
    assert scene.decide().waits[shape].params["resource"] == "cpu"


def test_a_starving_one_reserves_only_what_it_would_take(scene, make_gpus):
    scene.machine(gpus=make_gpus(2))
    scene.running(gpus=[GpuGrant("GPU-1", 1, 1000)])
    shape, [job] = scene.waiting(gpu=1, queued_at=0.0)
    avoiding(scene, shape, ["GPU-0"])
    [kept] = scene.decide(now=1000.0).reservations
    assert (kept.job_id, kept.gpu_uuids) == (job, ("GPU-1",))


def test_jobs_without_gpus_do_not_care(scene):
    scene.machine()
    shape, [job] = scene.waiting()
    avoiding(scene, shape, ["GPU-0"])
    assert given(scene.decide()) == {job: []}
