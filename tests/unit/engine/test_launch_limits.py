"""Which limits an attempt is started with (R33): memory is a request unless people decide else."""

import pytest

from yards import until


def launched(make_engine, fields, **settings):
    engine = make_engine(**settings)
    ref = engine.submit(**fields)
    return until(lambda: engine.executor.launches.get(f"{ref}.1"))


ASKED = {"memory_gb": 0.0625}
UNASKED = {"memory_gb": None}


def test_nothing_is_enforced_by_default(make_engine):
    plan = launched(make_engine, ASKED)
    assert (plan.memory_limit_mb, plan.pids_limit, plan.cpus) == (None, None, None)
    assert (plan.memory_soft, plan.own_group, plan.nice) == (False, False, 0)


@pytest.mark.parametrize(("way", "soft"), [("cgroup", False), ("always", True)])
def test_what_a_person_wrote_is_enforced_where_that_is_set(make_engine, way, soft):
    plan = launched(make_engine, ASKED, enforce_memory=way)
    assert (plan.memory_limit_mb, plan.memory_soft, plan.own_group) == (64, soft, True)


@pytest.mark.parametrize("way", ["cgroup", "always"])
def test_a_default_share_is_never_enforced(make_engine, way):
    """It is a guess: nobody may lose a job to it."""
    plan = launched(make_engine, UNASKED, enforce_memory=way)
    assert (plan.memory_limit_mb, plan.own_group) == (None, False)


def test_a_retry_has_the_limit_too(make_engine):
    """Whether a person wrote it is kept with the job."""
    engine = make_engine(enforce_memory="cgroup", retry_delays=(0.0,))
    ref = engine.submit(memory_gb=0.0625, max_retries=1)
    until(lambda: engine.executor.launches.get(f"{ref}.1"))
    engine.finish(ref, 1)
    second = until(lambda: engine.executor.launches.get(f"{ref}.2"))
    assert second.memory_limit_mb == 64


def test_groups_can_be_turned_off_and_on_for_all(make_engine):
    off = launched(make_engine, ASKED, enforce_memory="always", cgroups="off")
    assert (off.own_group, off.memory_limit_mb, off.memory_soft) == (False, 64, True)
    assert launched(make_engine, UNASKED, cgroups="all").own_group


def test_processes_and_niceness(make_engine):
    plan = launched(make_engine, UNASKED, job_pids_limit=500, job_nice=5)
    assert (plan.pids_limit, plan.nice, plan.own_group) == (500, 5, True)
