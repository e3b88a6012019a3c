"""Tests that share a large thing are kept together by their ids: every one of them is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from worker_groups import group_of

TESTS = Path(__file__).parents[1]
# The fixtures of a whole run that stand for something large, and the group of who uses them.
LARGE = {"ray_cluster": "ray", "docker_engine": "engines", "podman_engine": "engines"}


@pytest.mark.parametrize(("fixture", "group"), LARGE.items())
def test_users_of_a_large_fixture_are_in_its_group(fixture, group):
    asking = re.compile(rf"def \w+\([^)]*\b{fixture}\b")
    files = [path for path in TESTS.rglob("test_*.py") if asking.search(path.read_text())]
    assert files
    for path in files:
        assert group_of(f"{path.relative_to(TESTS.parent)}::test_any") == group


def test_other_tests_run_wherever_there_is_room():
    assert group_of("tests/integration/test_image_jobs.py::test_any[podman]") == "engines"
    assert group_of("tests/unit/cli/test_cli_words.py::test_any[docker_engine]") is None
