"""The page of words to search for in the log says what the source says, and all of it."""

from __future__ import annotations

import ast
import re

LEVELS = {"info", "warning", "error", "critical", "log"}
ROW = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)
# What R9 names; each is proven on a real server or yard in test_story.py and test_story_words.py.
WANTED = (
    "job cancelled before starting",
    "cancel asked by",
    "cleaning up",
    "GPU memory released",
    "lease ran out",
    "swept again",
    "cannot be killed",
)


def sources(root):
    engine = sorted((root / "src/runyard/engine").rglob("*.py"))
    return [ast.parse(path.read_text()) for path in (*engine, root / "src/runyard/server.py")]


def texts(tree):
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def lines(tree):
    """The templates of all lines for people: literals, or names that literals were given to."""
    named = {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        speaker = ast.unparse(node.func.value)
        if node.func.attr not in LEVELS or not re.match(r"log\b|server_log\.of\(", speaker):
            continue
        said = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        said += [named.get(arg.id) for arg in node.args[:1] if isinstance(arg, ast.Name)]
        yield next(text for text in said if isinstance(text, str))


def phrases(root):
    return ROW.findall((root / "docs/guides/log-words.md").read_text())


def test_every_phrase_is_one_of_the_source(root):
    """R9"""
    said = {text for tree in sources(root) for text in texts(tree)}
    # "cancel asked by" and "force-kill asked by" are one template with the word put in.
    said |= {text.replace("{}", word, 1) for text in said for word in ("cancel", "force-kill")}
    missing = [phrase for phrase in phrases(root) if not any(phrase in text for text in said)]
    assert missing == []


def test_every_line_of_the_log_is_on_the_page(root):
    """R9"""
    known = [*phrases(root), "{} asked by"]
    said = [text for tree in sources(root) for text in lines(tree) if re.search("[a-z]", text)]
    assert len(said) > 30
    left = [text for text in said if not any(phrase in text for phrase in known)]
    assert left == [], "each needs a row in docs/guides/log-words.md"


def test_what_people_search_for_is_on_the_page(root):
    """R9"""
    assert set(WANTED) <= set(phrases(root))
