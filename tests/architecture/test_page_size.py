"""The first page of the web page stays small, and so does every part that comes later."""

from __future__ import annotations

import importlib.util
import sys

import pytest

FIRST_PAGE = 230_000
LATER = 30_000
# Loaded when they are used, and each has a reason to be larger than a page: a YAML reader with
# Element Plus' form fields, and the plotting library.
LARGER = {
    "src/components/job/JobSubmitDialog.vue": 60_000,
    "src/components/metric/MetricChart.vue": 30_000,
}


@pytest.fixture(scope="module")
def page(root):
    if not (root / "build" / "web-parts.json").is_file():
        pytest.skip("the web page is not built here: make web")
    spec = importlib.util.spec_from_file_location("page_size", root / "scripts" / "page_size.py")
    assert spec
    assert spec.loader
    page_size = importlib.util.module_from_spec(spec)
    sys.modules["page_size"] = page_size  # dataclasses look their module up
    spec.loader.exec_module(page_size)
    return page_size.Page()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_page_is_small(page, language):
    """With everything that /now loads in one language, packed with gzip (R37)."""
    files = page.first(language)
    assert page.bytes(files) <= FIRST_PAGE, sorted(files)
    assert len(files) <= 30, "a browser asks for six at a time: see GROUPS in vite.config.ts"


def test_nobody_loads_the_other_language(page):
    words = {
        language: page.at_once(page.named(f"src/words/{language}.ts")) for language in ("en", "zh")
    }
    assert not page.first("en") & words["zh"]
    assert not page.first("zh") & words["en"]


def test_each_later_part_is_small(page):
    heavy = {
        part.source: page.weight(part)
        for part in page.later()
        if page.weight(part) > LARGER.get(part.source, LATER)
    }
    assert not heavy, f"load these, or some of what they use, only when somebody asks: {heavy}"
    assert LARGER.keys() <= {part.source for part in page.later()}
