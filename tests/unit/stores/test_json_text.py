"""JSON that comes back exactly."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.domain import errors
from runyard.stores import json_text

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(values)
def test_every_value_comes_back(value):
    again = json_text.decode(json_text.encode(value))
    assert again == value
    assert repr(again) == repr(value)


def test_nan_comes_back():
    assert math.isnan(json_text.decode(json_text.encode({"a": [math.nan]}))["a"][0])


@pytest.mark.parametrize("value", [object(), {1: "a"}, {"a": "\udcff"}, {"a": {1, 2}}])
def test_what_cannot_be_kept_is_refused(value):
    with pytest.raises(errors.BadRequest):
        json_text.encode(value)
