"""What a store promises about checkpoints, datasets and peaks."""

from __future__ import annotations

from dataclasses import replace

from runyard.domain.checkpoints.record import CheckpointRecord, CheckpointVerdict
from runyard.domain.datasets import Dataset, NewDataset
from runyard.domain.peaks import EarlierRun, Peak
from runyard.domain.reasons import Reason
from runyard.domain.states import AttemptEnd, AttemptStatus
from runyard.stores.base import Store, Transaction
from runyard.testing.store_samples import START, place, submit_one

_LIVE = frozenset({AttemptStatus.STARTING})


def _saved(job_id: int, **changes: object) -> CheckpointRecord:
    plain = CheckpointRecord(
        job_id=job_id,
        attempt=1,
        path="/out/checkpoints/checkpoint-500",
        family="huggingface",
        size_bytes=2**40,
        saved_at=START,
        step=500,
        verdict=CheckpointVerdict.GOOD,
        metrics={"loss": 0.25, "nan": float("inf")},
        reported=True,
        checked_at=START + 1,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


class RepairContract:
    def test_a_checkpoint_comes_back_exactly(self, store: Store) -> None:
        job = submit_one(store)
        why = Reason("truncated", {"file": "a.pt"})
        sent = [
            _saved(job.id),
            _saved(
                job.id,
                path="/out/b",
                saved_at=START - 5,
                step=None,
                verdict=CheckpointVerdict.BAD,
                why=why,
                reported=False,
                metrics={},
                checked_at=None,
            ),
        ]
        store.write(lambda tx: tx.put_checkpoints(sent))
        with store.read() as reader:
            found = reader.checkpoints(job.id)
        assert [replace(one, id=0) for one in found] == sent[::-1], "in the order they were saved"
        assert len({one.id for one in found} - {0}) == 2

    def test_a_checkpoint_of_the_same_path_is_replaced(self, store: Store) -> None:
        job, other = submit_one(store), submit_one(store)
        store.write(lambda tx: tx.put_checkpoints([_saved(job.id), _saved(other.id)]))
        again = _saved(job.id, verdict=CheckpointVerdict.GONE, size_bytes=0)
        store.write(lambda tx: tx.put_checkpoints([again]))
        with store.read() as reader:
            [found] = reader.checkpoints(job.id)
            [untouched] = reader.checkpoints(other.id)
        assert replace(found, id=0) == again
        assert untouched.verdict is CheckpointVerdict.GOOD
        assert store.write(lambda tx: tx.delete_checkpoint(found.id))
        assert not store.write(lambda tx: tx.delete_checkpoint(found.id))
        with store.read() as reader:
            assert reader.checkpoints(job.id) == []

    def test_a_deleted_job_takes_its_checkpoints_along(self, store: Store) -> None:
        job = submit_one(store)
        store.write(lambda tx: tx.put_checkpoints([_saved(job.id)]))
        store.write(lambda tx: tx.delete_job(job.id))
        with store.read() as reader:
            assert reader.checkpoints(job.id) == []

    def test_a_dataset_comes_back_exactly(self, store: Store) -> None:
        new = NewDataset("images", "https://example.org/images.tar", "sha256:" + "a" * 64)
        kept = store.write(lambda tx: tx.insert_dataset(new, "anna", START))
        assert kept == Dataset(kept.id, new.name, new.uri, new.hash, "anna", START)
        plain = NewDataset("audio", "file:///data/audio")
        second = store.write(lambda tx: tx.insert_dataset(plain, "ben", START))
        with store.read() as reader:
            assert reader.dataset(kept.id) == reader.dataset("images") == kept
            assert reader.dataset(kept.id + 100) is None
            assert reader.dataset("video") is None
            assert reader.datasets() == [second, kept]
        assert store.write(lambda tx: tx.delete_dataset(kept.id))
        assert not store.write(lambda tx: tx.delete_dataset(kept.id))
        with store.read() as reader:
            assert reader.datasets() == [second]

    def test_peaks_of_completed_attempts_are_found_newest_first(self, store: Store) -> None:
        ended = {}
        for number, end in enumerate(
            (AttemptEnd.COMPLETED, AttemptEnd.FAILED, AttemptEnd.COMPLETED)
        ):
            job = submit_one(store, name="same", command=("train", str(number)))
            peak = Peak(job.attempt_id(1), 512.5 + number, None, 99.0, 60.0)

            def work(tx: Transaction, job=job, peak=peak, end=end, number=number) -> None:  # type: ignore[no-untyped-def]
                place(tx, job)
                status = AttemptStatus.ENDED
                at = START + number
                tx.update_attempt(peak.attempt_id, _LIVE, status=status, end=end, ended_at=at)
                tx.put_peak(Peak(peak.attempt_id))
                tx.put_peak(peak)

            store.write(work)
            ended[number] = EarlierRun(job.ref, job.owner, "same", ("train", str(number)), peak)
        with store.read() as reader:
            assert reader.earlier_runs(10) == [ended[2], ended[0]]
            assert reader.earlier_runs(1) == [ended[2]]
            assert reader.peak(ended[1].peak.attempt_id) == ended[1].peak
            assert reader.peak("job-x.1") is None
