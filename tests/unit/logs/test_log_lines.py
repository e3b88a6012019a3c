"""How bytes become lines."""

from hypothesis import given
from hypothesis import strategies as st

from runyard.domain import log_lines


def test_text_after_a_carriage_return_replaces_the_line():
    assert log_lines.shown(b"10%\r20%\r30%") == "30%"


def test_a_trailing_carriage_return_keeps_the_line():
    assert log_lines.shown(b"10%\r20%\r") == "20%"
    assert log_lines.shown(b"windows line\r") == "windows line"
    assert log_lines.shown(b"\r\r") == ""


def test_invalid_utf8_is_replaced_and_ansi_left_alone():
    assert log_lines.shown(b"bin \xff\xfe\x00 end") == "bin \ufffd\ufffd\x00 end"
    assert log_lines.shown(b"\x1b[31mred\x1b[0m") == "\x1b[31mred\x1b[0m"


def test_a_very_long_line_is_cut_with_a_mark():
    text = log_lines.shown(b"x" * 100_000)
    assert text.startswith("x" * log_lines.LONGEST_LINE + " [...")
    assert text.endswith(f"{100_000 - log_lines.LONGEST_LINE} more bytes in this line]")


def test_a_cut_inside_a_character_adds_no_damage():
    text = log_lines.cut("é".encode() * 100, 15)
    assert text == "é" * 7 + " [... 186 more bytes in this line]"


@given(st.binary(max_size=200), st.integers(1, 100))
def test_whatever_comes_gives_text_of_bounded_length(line, longest):
    text = log_lines.cut(line, longest)
    assert len(text) <= longest + 60
    assert "\n" not in log_lines.shown(line.replace(b"\n", b""))


def test_amounts_are_readable():
    assert log_lines.amount(5) == "5 bytes"
    assert log_lines.gap_line(12_900_000) == "[... 12.3 MiB dropped here ...]"
    assert log_lines.amount(3 * 1024**4) == "3.0 TiB"
