"""Fixtures of the prefetch tests: a misbehaving server and programs that fetch from it."""

import itertools

import pytest

from download_server import DownloadServer
from prefetching_program import Program


@pytest.fixture
def server():
    server = DownloadServer()
    yield server
    server.close()


@pytest.fixture
def make_program(tmp_path):
    """Make (not yet start) programs that share one cache; each has its own link directory."""
    numbers = itertools.count()
    made = []

    def make(*items, cache=None, **options):
        folder = tmp_path / f"program{next(numbers)}"
        program = Program(folder, *items, cache=cache or tmp_path / "cache", **options)
        made.append(program)
        return program

    yield make
    for program in made:
        program.end()
