"""What is read of a log to find out why its program failed: bounded, with true line numbers."""

import os

from runyard.logs import log_ends


def test_a_short_log_is_read_whole(tmp_path):
    log = tmp_path / "out.log"
    log.write_text("one\ntwo\nthree")
    assert log_ends.read(str(log)).tail == ((1, "one"), (2, "two"), (3, "three"))
    assert log_ends.read(str(tmp_path / "none")) == log_ends.LogEnds()
    log.write_text("")
    assert log_ends.read(str(log)) == log_ends.LogEnds()


def test_of_a_long_log_the_end_and_what_speaks_of_errors(tmp_path):
    log = tmp_path / "out.log"
    lines = [f"step {n} loss 0.5" for n in range(1, 60_001)]
    lines[99] = "RuntimeError: first of all"
    lines[49_999] = "ValueError: in the middle"
    log.write_text("\n".join(lines) + "\n")
    found = log_ends.read(str(log))
    assert len(found.tail) == log_ends.MOST_TAIL_LINES
    assert found.tail[-1] == (60_000, "step 60000 loss 0.5")
    assert (100, "RuntimeError: first of all") in found.first_errors
    assert (50_000, "ValueError: in the middle") in found.first_errors
    assert (50_001, "step 50001 loss 0.5") in found.first_errors, "what follows may belong to it"
    assert all(lines[number - 1] == text for number, text in (*found.first_errors, *found.tail))


def test_errors_without_end_and_lines_without_end_are_bounded(tmp_path):
    log = tmp_path / "errors.log"
    log.write_text("ERROR: again\n" * 200_000)
    assert len(log_ends.read(str(log)).first_errors) <= log_ends.MOST_ERROR_LINES
    bar = tmp_path / "bar.log"
    bar.write_bytes(b"\r 10%|#" * 400_000 + b"\nKilled\n")
    found = log_ends.read(str(bar))
    assert found.tail[-1] == (2, "Killed")
    assert all(len(text) < 10_000 for _, text in found.tail)
    noise = tmp_path / "noise.log"
    noise.write_bytes(os.urandom(300_000))
    assert log_ends.read(str(noise)).tail


def test_a_gap_in_the_middle_is_left_out(tmp_path):
    log = tmp_path / "out.log"
    with log.open("wb") as file:
        file.write(b"RuntimeError: at first\n" + b"x" * 4000 + b"\n")
        file.seek(8 << 20)
        file.write(b"\nthe end\n")
    found = log_ends.read(str(log))
    assert found.first_errors[0] == (1, "RuntimeError: at first")
    assert found.tail[-1][1] == "the end"
    assert all("\0" not in text for _, text in found.tail)
