"""What earlier runs of a job suggest for the next (R39)."""

from runyard.domain import peaks
from runyard.domain.peaks import EarlierRun, Peak, Suggestion


def run(number, memory=None, gpu=None, seconds=None):
    return EarlierRun(f"job-{number}", "ann", "x", "x", Peak("a", memory, gpu, None, seconds))


def test_the_largest_of_the_last_five_with_some_room():
    runs = [run(9, 1024.0, 900.2, 59.5), run(8, 2048.0, None, 61.0)]
    assert peaks.suggestion(runs) == Suggestion("job-9", 2.4, 901, 61)
    old = [run(n, 100.0) for n in range(5)] + [run(6, 99_999.0)]
    assert peaks.suggestion(old).memory_gb == 0.2


def test_nothing_known_suggests_nothing():
    assert peaks.suggestion([]) is None
    assert peaks.suggestion([run(1)]) is None
    assert peaks.suggestion([run(1, memory=512.0)]).seconds is None
