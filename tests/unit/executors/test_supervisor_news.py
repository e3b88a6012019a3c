"""Datagrams and journals of supervisors, as the executor port tells them."""

from __future__ import annotations

import pytest

from runyard.executors.base import NewsKind, Sight
from runyard.executors.supervisor_news import news_of, sighting_of
from runyard.supervisor.journal import Journal

EXIT = {"code": 3, "signal": None, "cause": "exited", "by": "supervisor", "ended_at": 9.0}
JOB = {"kind": "job", "pid": 77, "started_at": 5.0}


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"kind": "started", "started_at": 4.0}, NewsKind.STARTED),
        ({"kind": "ended", "exit": EXIT}, NewsKind.ENDED),
        ({"kind": "ended"}, NewsKind.LOST_SIGHT),
        ({"kind": "lost"}, NewsKind.LOST_SIGHT),
        ({"kind": "finishing"}, NewsKind.FINISHING),
        ({"kind": "stopping", "cause": "timeout", "grace_s": 2}, NewsKind.STOPPING),
        ({"kind": "service_ready", "name": "web"}, NewsKind.SERVICE),
        ({"kind": "stuck", "processes": []}, NewsKind.STUCK),
    ],
)
def test_what_a_datagram_means(told, kind):
    news = news_of({"attempt_id": "job-a.1", "at": 8.0, **told})
    assert news is not None
    assert (news.attempt_id, news.kind) == ("job-a.1", kind)


def test_what_nobody_knows_means_nothing():
    assert news_of({"attempt_id": "job-a.1", "kind": "of a later release"}) is None


def test_a_start_is_at_its_own_time_and_an_end_has_its_record():
    started = news_of({"attempt_id": "job-a.1", "kind": "started", "at": 8.0, "started_at": 4.0})
    ended = news_of({"attempt_id": "job-a.1", "kind": "ended", "at": 9.5, "exit": EXIT})
    assert started is not None
    assert started.at == 4.0
    assert ended is not None
    assert ended.end is not None
    assert (ended.end.code, ended.end.ended_at) == (3, 9.0)


@pytest.mark.parametrize(
    ("records", "asked", "sight"),
    [
        ([], None, Sight.STARTING),
        ([], {"seq": 2}, Sight.STARTING),
        ([JOB], None, Sight.RUNNING),
        ([JOB], {"seq": 2}, Sight.STOPPING),
        ([JOB, {"kind": "main_exit", "code": 0}], None, Sight.STOPPING),
    ],
)
def test_how_far_an_attempt_without_an_end_is(records, asked, sight):
    written = Journal()
    written.records += records
    seen = sighting_of(written, asked, 30.0)
    assert (seen.sight, seen.hung_since) == (sight, 30.0)
    assert seen.stop_seq == (2 if asked else 0)
    assert seen.started_at == (5.0 if records else None)
