"""The registry of datasets, and what a submitted job takes from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runyard.domain import datasets, errors
from runyard.domain.datasets import Dataset, NewDataset
from runyard.domain.job import NewJob
from runyard.engine.access.actor import Actor
from runyard.engine.parts import Parts
from runyard.stores.base import Reader, Transaction

MOST_DATASETS = 10_000


class DatasetDesk:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def all(self) -> list[Dataset]:
        with self._parts.store.read() as reader:
            return reader.datasets()

    def get(self, ref: str) -> Dataset:
        with self._parts.store.read() as reader:
            return _find(reader, ref)

    def create(self, new: NewDataset, actor: Actor) -> Dataset:
        """Conflict when a job could not tell it from another by its name."""
        actor.must_submit()
        now = self._parts.clock()

        def work(tx: Transaction) -> Dataset:
            known = tx.datasets()
            if len(known) >= MOST_DATASETS:
                raise errors.Conflict(f"There are {MOST_DATASETS} datasets already.")
            taken = datasets.same_variable(new.name, [one.name for one in known])
            if taken is not None:
                raise errors.Conflict(
                    f"There is a dataset {taken} already: both would be "
                    f"{datasets.variable(taken)} in a job.",
                    name=taken,
                )
            return tx.insert_dataset(new, actor.name, now)

        return self._parts.store.write(work, exclusive=self._parts.store.shared)

    def delete(self, ref: str, actor: Actor) -> None:
        """Jobs that were submitted with it keep what they need of it."""

        def work(tx: Transaction) -> None:
            known = _find(tx, ref)
            if actor.role != "admin" and actor.name != known.created_by:
                raise errors.Forbidden(name=actor.name, role=actor.role)
            tx.delete_dataset(known.id)

        self._parts.store.write(work)


def taken_along(tx: Reader, drafts: Sequence[NewJob]) -> list[NewJob]:
    """Each with the datasets it names as they are now; UnknownDataset when one is not there."""
    return [_with_datasets(tx, draft) if draft.spec.dataset_ids else draft for draft in drafts]


def _with_datasets(tx: Reader, draft: NewJob) -> NewJob:
    found = []
    for number in dict.fromkeys(draft.spec.dataset_ids):
        known = tx.dataset(number)
        if known is None:
            raise errors.UnknownDataset(dataset=number)
        found.append(known)
    return replace(draft, spec=replace(draft.spec, datasets=tuple(found)))


def _find(reader: Reader, ref: str) -> Dataset:
    known = reader.dataset(int(ref)) if ref.isdecimal() and len(ref) < 18 else None
    known = known or reader.dataset(ref)
    if known is None:
        raise errors.NotFound(f"There is no dataset {ref}.", dataset=ref)
    return known
