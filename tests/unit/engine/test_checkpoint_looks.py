"""What a look at the checkpoints of a job makes of them, by the real check of real files (R19)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import checkpoint_files as made
from engine_yard import EngineYard
from runyard.domain.checkpoints import resuming
from runyard.engine import job_dirs
from runyard.engine.checkpoint.checkpointing import Checkpointing
from runyard.probes.checkpoint_program import CheckpointProgram


@pytest.fixture
def yard(tmp_path):
    yard = EngineYard(tmp_path / "yard").open()
    yield yard
    yard.close()


class Look:
    """A job that has written something, and how it is judged."""

    def __init__(self, yard) -> None:
        self.yard = yard
        self.ref = yard.running()
        job = yard.job(self.ref)
        self.folder = Path(job_dirs.checkpoint_dir(job, str(yard.settings.data_dir)))

    def records(self):
        parts = replace(self.yard.parts, checkpoint_check=CheckpointProgram())
        job = self.yard.job(self.ref)
        Checkpointing(parts).look(job, settle_s=0.0)
        with parts.store.read() as reader:
            return reader.checkpoints(job.id)

    def verdicts(self):
        return {
            str(Path(one.path).relative_to(self.folder)): (
                one.verdict.value,
                one.why and (one.why.code, one.why.params.get("file")),
            )
            for one in self.records()
        }

    def chosen(self):
        return [Path(one.path).name for one in resuming.choose(self.records())]


@pytest.fixture
def look(yard):
    return Look(yard)


def shards(folder: Path, numbers, of: int = 3, *, first: str = "model", index: bool = False):
    for number in numbers:
        made.safetensors_file(
            folder / f"{first}-{number:05}-of-{of:05}.safetensors", (f"t{number}",)
        )
    if index:
        made.index_of_shards(folder, first)


def test_shards_of_which_some_were_never_written_are_bad(look):
    """A save that was cut off before its index: nothing in it tells of the missing shards but the
    names of those that are there."""
    shards(look.folder / "step-10", (1, 2, 3), index=True)
    shards(look.folder / "step-20", (1,))
    shards(look.folder / "step-30", (1, 2))
    assert look.verdicts() == {
        "step-10": ("good", None),
        "step-20": ("bad", ("missing_file", "model-00002-of-00003.safetensors")),
        "step-30": ("bad", ("missing_file", "model-00003-of-00003.safetensors")),
    }
    assert look.chosen() == ["step-10"]


def test_all_shards_without_their_index_count_only_where_nothing_is_proven(look):
    shards(look.folder / "step-20", (1, 2, 3))
    assert look.verdicts() == {"step-20": ("unknown", ("format_not_checked", None))}
    assert look.chosen() == ["step-20"], (
        "a program that never writes an index goes on all the same"
    )
    shards(look.folder / "step-10", (1, 2, 3), index=True)
    assert look.chosen() == ["step-10"]


def test_shards_in_the_directory_itself(look):
    shards(look.folder, (1, 2))
    assert look.verdicts() == {
        "model.safetensors.index.json": ("bad", ("missing_file", "model.safetensors.index.json"))
    }
    shards(look.folder, (1, 2, 3), index=True)
    assert look.verdicts() == {"model.safetensors.index.json": ("good", None)}


def test_shards_of_a_part_of_the_model_count_too(look):
    for step in (5, 6):
        folder = made.huggingface_folder(look.folder / f"checkpoint-{step}", step)
        shards(folder / "unet", (1, 2), of=2, first="diffusion_pytorch_model", index=True)
    gone = "diffusion_pytorch_model-00002-of-00002.safetensors"
    (look.folder / "checkpoint-6" / "unet" / gone).unlink()
    assert look.verdicts() == {
        "checkpoint-5": ("good", None),
        "checkpoint-6": ("bad", ("missing_file", gone)),
    }


def test_a_distributed_save_without_its_metadata_is_bad(look):
    """torch writes it last."""
    (look.folder / "dcp_5").mkdir(parents=True)
    (look.folder / "dcp_5" / "__0_0.distcp").write_bytes(b"x" * 100)
    assert look.verdicts() == {"dcp_5": ("bad", ("missing_file", ".metadata"))}
