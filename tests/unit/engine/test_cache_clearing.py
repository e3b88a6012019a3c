"""R20, clear_cache: the damaged entry is dropped, and nothing else can be."""

from pathlib import Path

from runyard.engine.recover import cache_clearing
from yards import until


def test_only_files_inside_of_caches_are_dropped(engine, tmp_path):
    cache = tmp_path / "hub"
    blob, link = cache / "blobs" / "abc", cache / "snapshots" / "model.safetensors"
    for path in (blob, link):
        path.parent.mkdir(parents=True)
    blob.write_text("half")
    link.symlink_to(blob)
    outside = tmp_path / "model.bin"
    outside.write_text("mine")
    leads_out = cache / "leads-out"
    leads_out.symlink_to(outside)
    ref = engine.submit(env_vars={"HF_HOME": str(cache)})
    asked = [str(link), str(outside), str(cache / "blobs"), "relative", str(cache / "none"), "\0"]
    dropped = cache_clearing.clear(engine.parts, engine.job(ref), asked)
    assert dropped == [str(link), str(blob)]
    assert cache_clearing.clear(engine.parts, engine.job(ref), [str(leads_out)])
    sneaky = str(cache / ".." / "model.bin")
    assert cache_clearing.clear(engine.parts, engine.job(ref), [sneaky]) == []
    assert outside.read_text() == "mine"
    assert (cache / "blobs").is_dir()


def test_a_damaged_download_is_dropped_before_the_next_attempt(engine, tmp_path):
    cache = tmp_path / "huggingface" / "hub"
    cache.mkdir(parents=True)
    broken = cache / "model.safetensors"
    broken.write_text("half")
    ref = engine.running(max_retries=2, env_vars={"HF_HOME": str(tmp_path / "huggingface")})
    log = Path(engine.executor.log_path(engine.job(ref).attempt_id()))
    log.write_text(
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central "
        f"directory: {broken}\n"
    )
    engine.finish(ref, 1)
    engine.let_time_pass(lambda: engine.job(ref).attempt_number == 2)
    assert engine.attempts(ref)[0].plan["strategy"] == "clear_cache"
    until(lambda: not broken.exists())
