import pytest

from engine_yard import EngineYard


@pytest.fixture
def make_engine(tmp_path):
    """Yards on folders of this test, opened unless told otherwise."""
    made = []

    def make(folder=None, *, opened=True, **options):
        yard = EngineYard(tmp_path / (folder or f"yard{len(made)}"), **options)
        made.append(yard)
        return yard.open() if opened else yard

    yield make
    for yard in made:
        if hasattr(yard.executor, "gate"):
            yard.executor.gate.set()
        yard.close()


@pytest.fixture
def engine(make_engine):
    return make_engine()
