"""Commands with parameters: what is replaced, and that a value stays one word in a real shell."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runyard.domain.command import Places, param_text, render

PLACES = Places("/out put", "/check", "/resume/x.pt")


def shell(text, params=None, places=PLACES):
    return render(text, params or {}, places)[2]


def said(text, value):
    """What the shell makes of the command."""
    argv = render(text, {"x": value}, PLACES)
    return subprocess.run(argv, capture_output=True, check=True).stdout.decode()


def test_a_string_is_run_by_the_shell():
    assert render("echo hi", {}, PLACES) == ("/bin/sh", "-c", "echo hi")


def test_a_list_is_executed_as_it_is():
    argv = render(("train", "--lr={lr}", "{output_dir}", "{other}"), {"lr": 0.1}, PLACES)
    assert argv == ("train", "--lr=0.1", "/out put", "{other}")


def test_places_are_replaced_and_quoted():
    text = shell("t --out {output_dir} --ckpt {checkpoint_dir} --resume {resume_from}")
    assert text == "t --out '/out put' --ckpt /check --resume /resume/x.pt"


@pytest.mark.parametrize("nothing", [None, ""])
def test_nothing_to_resume_from_is_an_empty_word(nothing):
    places = Places("/o", "/c", nothing)
    assert shell("t {resume_from}", places=places) == "t ''"
    assert render(["t", "{resume_from}"], {}, places) == ("t", "")


@pytest.mark.parametrize(
    "text",
    ["${lr}", "{unknown}", "{}", "{ lr }", "${HOME}", "{lr!r}", "{lr:.2f}", "awk '{print $1}'"],
)
def test_every_other_brace_is_left_alone(text):
    assert shell(text, {"lr": 1}) == text


def test_values_are_not_replaced_again():
    assert shell("{a}", {"a": "{b}", "b": "x"}) == "'{b}'"


def test_names_with_odd_characters_are_taken_literally():
    assert shell("{a.b} {aXb}", {"a.b": 1}) == "1 {aXb}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (3, "3"),
        (0.001, "0.001"),
        (True, "true"),
        (None, ""),
        ([1, "é"], '[1, "é"]'),
        ({"a": 1}, '{"a": 1}'),
    ],
)
def test_parameters_as_text(value, text):
    assert param_text(value) == text


NASTY = "a b'c\"d$HOME`id`\\e;#!\n{x}"


@pytest.mark.parametrize(
    "template",
    [
        "printf %s {x}",
        "printf %s '{x}'",
        'printf %s "{x}"',
        "printf %s \\'{x} | cut -c 2- ; :",
        "# don't {x} it's\nprintf %s {x}",
        "true;# don't\nprintf %s {x}",
        "printf %s {x} # don't",
        "printf '%s' \"it's \"{x} | tail -c +6",
        'printf %s "\\""{x} | tail -c +2',
    ],
)
def test_a_value_is_one_word_wherever_it_stands(template):
    value = NASTY if "cut" not in template else NASTY.replace("\n", "")
    assert said(template, value).rstrip("\n") == value


def test_a_hash_inside_a_word_is_no_comment():
    assert said("printf %s a#'{x}'", "it's") == "a#it's"


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20))
def test_no_value_breaks_out(value):
    assert said("printf '%s|%s|%s' {x} '{x}' \"{x}\"", value) == f"{value}|{value}|{value}"
