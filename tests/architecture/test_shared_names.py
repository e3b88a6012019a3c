"""Names of files that several parts must agree on, and that may not import each other: what a
training saves (`runyard.report`, standard library only), what judges it (a program that sees only
its own folder) and what lists it (the domain)."""

from __future__ import annotations

from runyard.domain.checkpoints import listing
from runyard.probes.checkpoint_check import folders, manifests, verdicts
from runyard.report import atomic_save


def test_manifests_are_called_the_same_everywhere():
    assert atomic_save.MANIFEST_SUFFIX == manifests.BESIDE_FILE
    assert atomic_save.MANIFEST_INSIDE == manifests.INSIDE_FOLDER
    assert atomic_save.MANIFEST_SUFFIX in listing._BESIDE


def test_saves_that_were_cut_off_are_known_by_their_name():
    name = f"{atomic_save.PARTIAL_PREFIX}1-2-model.pt"
    assert listing._is_unfinished(name)
    assert verdicts.is_unfinished(name)


def test_marks_of_orbax_are_the_same():
    assert set(listing._ORBAX_MARKS) == set(folders._ORBAX_MARKS)
    assert listing._ORBAX_MARKS[0] == folders._ORBAX_MARKS[0]
