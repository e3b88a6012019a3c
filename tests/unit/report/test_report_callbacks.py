"""The callbacks without their frameworks: the hooks in the order the frameworks call them.
tests/compat/test_real_frameworks.py has the same with the real ones."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from runyard.report import huggingface, keras, lightning, stopping


@pytest.fixture
def told(tmp_path, monkeypatch):
    """The lines told so far, by calling it."""
    file = tmp_path / "m.jsonl"
    monkeypatch.setenv("RUNYARD_METRICS_FILE", str(file))
    monkeypatch.setenv("RUNYARD_STOP_FILE", str(tmp_path / "stop"))
    monkeypatch.setenv("RUNYARD_CHECKPOINT_DIR", str(tmp_path / "checkpoints"))
    monkeypatch.setattr(stopping._State, "asked", False)
    monkeypatch.setattr(stopping._State, "handler_settled", True)  # the test's own stays
    monkeypatch.setattr(stopping._State, "looked_at", float("-inf"))
    return lambda: [json.loads(line) for line in file.read_text().splitlines()]


def ask_to_stop(tmp_path, monkeypatch):
    (tmp_path / "stop").touch()
    monkeypatch.setattr(stopping._State, "looked_at", float("-inf"))


def test_the_trainer_of_transformers(told, tmp_path, monkeypatch):
    """R15"""
    args = SimpleNamespace(output_dir=str(tmp_path))
    state = SimpleNamespace(
        global_step=0, max_steps=20, epoch=0.0, num_train_epochs=2, is_world_process_zero=True
    )
    control = SimpleNamespace(should_save=False, should_training_stop=False, should_evaluate=True)
    callback = huggingface.RunyardCallback(progress_every_s=0)
    callback.on_train_begin(args, state, control)
    state.global_step, state.epoch = 5, 0.5
    assert callback.on_step_end(args, state, control) is control
    callback.on_log(args, state, control, logs={"loss": 0.5, "learning_rate": 1e-4, "epoch": 0.5})
    (tmp_path / "checkpoint-5").mkdir()
    callback.on_save(args, state, control)
    assert not control.should_save
    ask_to_stop(tmp_path, monkeypatch)
    callback.on_step_end(args, state, control)
    callback.on_epoch_end(args, state, control)
    assert control.should_save
    assert control.should_training_stop
    assert not control.should_evaluate
    callback.on_train_end(args, state, control)
    lines = told()
    assert [line["step"] for line in lines] == [0, 5, 5, 5, 5, 5, 5, 5]
    named = [line.get("phase") for line in lines]
    assert named == [None, None, "evaluating", None, None, "evaluating", "saving", "finishing"]
    assert (lines[3]["loss"], lines[3]["total"], lines[3]["total_epochs"]) == (0.5, 20, 2)
    assert lines[4]["path"] == str(tmp_path / "checkpoint-5")


def test_what_the_trainer_does_between_steps(told, tmp_path):
    """R24: a pause that is named is no stall."""
    args = SimpleNamespace(output_dir=str(tmp_path))
    state = SimpleNamespace(
        global_step=5, max_steps=20, epoch=0.5, num_train_epochs=2, is_world_process_zero=True
    )
    control = SimpleNamespace(should_save=True, should_training_stop=False, should_evaluate=True)
    callback = huggingface.RunyardCallback(progress_every_s=0)
    callback.on_step_end(args, state, control)
    callback.on_prediction_step(args, state, control)
    control.should_evaluate = False
    callback.on_evaluate(args, state, control)
    control.should_save = False
    state.global_step = 6
    callback.on_step_end(args, state, control)
    named = [(line["step"], line.get("phase")) for line in told()]
    assert named == [(5, None), (5, "evaluating"), (5, "evaluating"), (5, "saving"), (6, None)]


def test_only_the_first_rank_tells(told, tmp_path):
    state = SimpleNamespace(
        global_step=1, max_steps=20, epoch=0.0, num_train_epochs=2, is_world_process_zero=False
    )
    callback = huggingface.RunyardCallback()
    callback.on_log(SimpleNamespace(output_dir=str(tmp_path)), state, None, logs={"loss": 1.0})
    assert not (tmp_path / "m.jsonl").exists()
    assert callable(told)


class FakeTrainer(SimpleNamespace):
    def save_checkpoint(self, path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("weights")


def test_lightning(told, tmp_path, monkeypatch):
    """R15"""
    loops = SimpleNamespace(min_epochs=2, epoch_loop=SimpleNamespace(min_steps=100))
    trainer = FakeTrainer(
        global_step=0, estimated_stepping_batches=20, current_epoch=0, max_epochs=2, max_steps=-1,
        log_every_n_steps=5, callback_metrics={"train_loss": 0.5}, is_global_zero=True,
        checkpoint_callbacks=[], should_stop=False, sanity_checking=False, limit_val_batches=1.0,
        default_root_dir=str(tmp_path), fit_loop=loops,
    )  # fmt: skip
    callback = lightning.RunyardCallback(progress_every_s=0)
    callback.on_train_start(trainer, None)
    trainer.global_step = 5
    callback.on_train_batch_end(trainer, None, None, None, 4)
    ask_to_stop(tmp_path, monkeypatch)
    trainer.global_step = 6
    callback.on_train_batch_end(trainer, None, None, None, 5)
    assert trainer.should_stop
    assert (loops.min_epochs, loops.epoch_loop.min_steps) == (None, None)
    lines = told()
    assert [line["step"] for line in lines] == [0, 5, 6, 6]
    assert (lines[1]["train_loss"], lines[1]["total"]) == (0.5, 20)
    assert Path(lines[-1]["path"]).read_text() == "weights"
    callback.on_validation_start(trainer, None)
    callback.on_save_checkpoint(trainer, None, {})
    callback.on_train_end(trainer, None)
    named = [line["phase"] for line in told()[4:]]
    assert named == ["evaluating", "saving", "finishing"]


class FakeModel:
    stop_training = False

    def save(self, path):
        Path(path).write_text("weights")


def test_keras(told, tmp_path, monkeypatch):
    """R15: also a fit that was resumed at its second epoch."""
    callback = keras.RunyardCallback(progress_every_s=0)
    callback.model, callback.params = FakeModel(), {"epochs": 3, "steps": 10}
    callback.on_train_begin()
    callback.on_epoch_begin(1)
    callback.on_train_batch_end(4, {"loss": 0.5})
    ask_to_stop(tmp_path, monkeypatch)
    callback.on_train_batch_end(5, {"loss": 0.4})
    callback.on_test_begin()
    callback.on_epoch_end(1, {"loss": 0.4, "val_loss": 0.6})
    callback.on_train_end()
    assert callback.model.stop_training
    lines = told()
    assert [line.get("step") for line in lines] == [0, 15, 16, None, 16, 16, 16, 16]
    assert lines[1]["total"] == 30
    assert lines[4]["kind"] == "checkpoint"
    assert lines[6]["val_loss"] == 0.6
    assert [lines[n]["phase"] for n in (3, 5, 7)] == ["saving", "evaluating", "finishing"]
    assert Path(lines[4]["path"]).read_text() == "weights"
