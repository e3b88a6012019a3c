"""Servers for integration tests: started for real, ended with everything they started."""

import pytest

from yards import RunningYard


@pytest.fixture
def make_yard(tmp_path):
    """Make (not yet start) servers on folders of this test."""
    made = []

    def make(*flags, **options):
        yard = RunningYard(tmp_path / f"yard{len(made)}", *flags, **options)
        made.append(yard)
        return yard

    yield make
    for yard in made:
        yard.stop()


@pytest.fixture
def yard(make_yard):
    return make_yard().start()
