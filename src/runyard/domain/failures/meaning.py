"""What an error means that no signature knows: by its numbers, its class, where it was raised and
its words. What the same input would raise again is never taken for what passes by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runyard.domain.failures import class_words, error_numbers, manner_words, message_words
from runyard.domain.failures.categories import Category
from runyard.domain.failures.statement import PANIC, Statement

BY_NUMBER = 0.93
BY_CLASS = 0.8
BY_PACKAGE = 0.78
BY_WORDS = 0.76
BY_MANNER = 0.72  # only that it is an error of the program
LONGEST = 600  # of a message: what comes later are details

_NUMBERS = (error_numbers.of_system, error_numbers.of_http)
_OF_INPUT = frozenset({Category.CONFIG, Category.DATA, Category.AUTH, Category.PATH})

Meaning = tuple[Category, float]

# Where it was raised: frames of the traceback, the last ones first.
_ENVIRON = re.compile(r"(?:<frozen os>|/os\.py)\", line \d{1,7}, in __getitem__|os\.environ\[")
_SETTING_UP = re.compile(
    r"(?:arguments?|args|config\w{0,20}|options|settings|cli)\.py\", line \d{1,7}"
    r"|, in (?:parse_args|validate_args|load_config|validate_config|from_yaml|from_cli)\b"
)
_RESUMING = re.compile(
    r"load_checkpoint|resume_from|, in (?:resume|restore|read_metadata)\b|restore\(|\.resume\b"
)
_LOADING = re.compile(
    r"torch\.load\(|serialization\.py|load_state_dict|load_checkpoint|np\.load\(|from_pretrained"
    r"|restore\(|joblib\.load|pickle\.load|load_model\("
)

_LIBRARY = re.compile(r"/(?:site|dist)-packages/")
_REACHING = re.compile(
    r"-packages/(?:urllib3|requests|aiohttp|httpx|httpcore|botocore|boto3|s3fs|gcsfs|fsspec|grpc"
    r"|huggingface_hub|redis|psycopg|pymysql|ray|wandb|mlflow|zmq|paramiko|torch/distributed"
    r"|torch/multiprocessing|vllm|sglang)"
)


def judge(said: Statement, frames: Sequence[str] = (), more: str = "") -> Meaning | None:
    """None: nothing tells whether it would come again. `more` are the lines below the message."""
    if more and not any(letter.isalnum() for letter in said.message[:LONGEST]):
        said = Statement(said.name, more, said.ends)
    found = _plain(said)
    if found is None and more:
        found = _plain(Statement(said.name, f"{said.message} {more}", said.ends))
    if found is None:
        return _refused(said, frames)
    return _raised_in(found, said, "\n".join(reversed(frames[-24:])))


def answered(category: Category, message: str) -> Category:
    """An answer of a server that says whose fault it is corrects what its class seems to say."""
    told = error_numbers.of_http(message[:LONGEST])
    if category is Category.NETWORK and told in (
        Category.AUTH,
        Category.PATH,
        Category.RATE_LIMIT,
    ):
        return told
    return category


def _plain(said: Statement) -> Meaning | None:
    message = said.message[:LONGEST]
    name = said.name.rpartition(".")[2].rpartition("::")[2]
    fixed = class_words.DETERMINISTIC.search(name) is not None
    for by_number in _NUMBERS:
        told = by_number(message)
        if told is not None and not fixed:
            return told, BY_NUMBER
    words = _in(message_words.MESSAGES, message)
    if words is not None and words[0] is Category.HOST_OOM and "cuda" in said.name.lower():
        words = Category.GPU_OOM, BY_WORDS
    if fixed:
        if words is not None and words[0] in _OF_INPUT and class_words.OF_CODE.search(name):
            words = None
        return words or _class(said.name, name) or (Category.CODE, BY_MANNER)
    named = _class(said.name, name)
    passing = _in(manner_words.PASSING, message)
    if said.name == PANIC:
        return words or passing or (Category.CODE, BY_CLASS)
    if named is not None and named[0] is not Category.CODE:
        return _closer(named, words, passing)
    if words is not None and not (passing is not None and words[0] in _OF_INPUT):
        return words
    if named is not None:
        return named
    if passing is not None:
        return passing
    coded = error_numbers.of_code(message)
    if coded is not None:
        return coded, BY_CLASS
    return _by_manner(said, message)


def _closer(named: Meaning, words: Meaning | None, passing: Meaning | None) -> Meaning:
    """A class of a wide kind, made closer by what its message says."""
    category = named[0]
    if category is Category.NETWORK:
        return words or passing or named
    if words == (Category.CONFIG, BY_WORDS) and named == (Category.DATA, BY_PACKAGE):
        return words
    if category in (Category.DATA, Category.CONFIG, Category.PATH) and words is not None:
        return words if words[0] in (Category.CKPT_CORRUPT, Category.CKPT_MISSING) else named
    if category is Category.HOST_OOM and words is not None:
        return words
    return named


def _by_manner(said: Statement, message: str) -> Meaning | None:
    text = f"{said.name} {message}"
    if manner_words.SURELY_WRONG.search(text):
        return Category.CODE, BY_MANNER
    if manner_words.MAYBE_PASSING.search(text) or not manner_words.WRONG.search(text):
        return None
    return Category.CODE, BY_MANNER


def _class(full: str, name: str) -> Meaning | None:
    for category, pattern in class_words.CLASS_WORDS:
        if category is not Category.CODE and pattern.search(name):
            packaged = _package(full)
            closer = packaged is not None and category is Category.DATA
            return (packaged, BY_CLASS) if packaged and closer else (category, BY_CLASS)
    packaged = _package(full)
    if packaged is not None:
        return packaged, BY_PACKAGE
    code = class_words.CLASS_WORDS[-1]
    return (code[0], BY_CLASS) if code[1].search(name) else None


def _package(full: str) -> Category | None:
    return next((one for one, pattern in class_words.PACKAGES if pattern.match(full)), None)


def _in(rows: Sequence[tuple[Category, re.Pattern[str]]], message: str) -> Meaning | None:
    return next(((one, BY_WORDS) for one, pattern in rows if pattern.search(message)), None)


def _raised_in(found: Meaning, said: Statement, frames: str) -> Meaning:
    category, sure = found
    if not frames:
        return found
    if category is Category.CODE:
        if said.name == "KeyError" and _ENVIRON.search(frames):
            return Category.CONFIG, BY_CLASS
        if _SETTING_UP.search(frames.partition("\n")[0] + frames[:400]):
            return Category.CONFIG, BY_WORDS
    if category is Category.DATA and _SETTING_UP.search(frames[:400]):
        return Category.CONFIG, sure
    if category is Category.PATH and _RESUMING.search(frames[:1500]):
        return Category.CKPT_MISSING, sure
    said_so = f"{said.name} {said.message[:200]}"
    if category is Category.DATA and _LOADING.search(frames[:1500]) and _not_whole(said_so):
        return Category.CKPT_CORRUPT, sure
    return found


def _refused(said: Statement, frames: Sequence[str]) -> Meaning | None:
    """What a library refuses, it refuses again: it raised the error itself, in code that reaches
    for nothing outside of the process."""
    place = next((at for at in range(len(frames) - 1, -1, -1) if 'File "' in frames[at]), None)
    if place is None or manner_words.MAYBE_PASSING.search(f"{said.name} {said.message}"):
        return None
    of_library = _LIBRARY.search(frames[place]) and not _REACHING.search(frames[place])
    raised = any(line.startswith("raise ") for line in frames[place + 1 :])
    return (Category.CODE, BY_MANNER) if of_library and raised else None


def _not_whole(said: str) -> bool:
    return manner_words.BROKEN.search(said) is not None or "zip" in said or "ickle" in said
