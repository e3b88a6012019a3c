"""Metrics of several ranks: read by offset from a file each, and none of a rank that is stale."""

import json

import pytest

from runyard.engine.history.attempt_reading import AttemptReading, Files

NOW = 1_800_000_000.0
TOKEN = "0123456789abcdef"


class Ranks:
    def __init__(self, folder):
        self.paths = {0: folder / "metrics.jsonl", 1: folder / "metrics-rank-1.jsonl"}
        self.files = Files(
            str(folder / "out.log"),
            str(self.paths[0]),
            str(folder),
            {1: str(self.paths[1])},
            TOKEN,
        )
        self.reading = self.opened(None)

    def opened(self, mark):
        return AttemptReading(self.files, "train", NOW, None, mark)

    def tell(self, file, **fields):
        with open(self.paths[file], "a") as written:
            written.write(json.dumps({"t": NOW, **fields}) + "\n")

    def read(self):
        taken = self.reading.read(NOW + 1)
        return {(one.name, one.step): one.value for one in taken.samples}


@pytest.fixture
def ranks(tmp_path):
    return Ranks(tmp_path)


def test_every_rank_has_series_of_its_own(ranks):
    """R30"""
    ranks.tell(0, step=1, loss=1.0, rank=0, token=TOKEN)
    ranks.tell(1, step=1, loss=2.0, rank=1, token=TOKEN)
    ranks.tell(1, step=2, loss=3.0)  # by a program that does not say its rank
    assert ranks.read() == {("loss", 1): 1.0, ("loss.rank1", 1): 2.0, ("loss.rank1", 2): 3.0}
    assert ranks.reading.progress(NOW + 1).step == 1


def test_lines_of_a_stale_rank_are_refused(ranks):
    """R34: whichever file they come to; lines without a token are another language's."""
    ranks.tell(0, step=1, loss=1.0, token="ffffffffffffffff")
    ranks.tell(1, step=1, loss=1.0, rank=1, token="ffffffffffffffff")
    ranks.tell(0, kind="checkpoint", path="/x", token="ffffffffffffffff")
    taken = ranks.reading.read(NOW + 1)
    assert (taken.samples, taken.checkpoints) == ([], [])
    assert (ranks.reading.stale, ranks.reading.malformed) == (3, 0)


def test_a_metric_called_token_is_a_metric(ranks):
    ranks.tell(0, step=1, token=5)
    assert ranks.read() == {("token", 1): 5.0}


def test_another_server_goes_on_where_it_was(ranks):
    """R42: no line of any rank is told twice."""
    ranks.tell(0, step=1, loss=1.0)
    ranks.tell(1, step=1, loss=2.0)
    ranks.read()
    mark = ranks.reading.mark(force=True)
    ranks.tell(1, step=2, loss=4.0)
    ranks.reading = ranks.opened(mark)
    assert ranks.read() == {("loss.rank1", 2): 4.0}


def test_the_last_line_of_a_rank_needs_no_end(ranks):
    ranks.paths[1].write_text('{"step": 7, "loss": 5.0}')
    taken = ranks.reading.read(NOW + 1, final=True)
    assert [(one.name, one.value) for one in taken.samples] == [("loss.rank1", 5.0)]
