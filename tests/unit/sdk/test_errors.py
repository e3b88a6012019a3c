"""Every error the server can answer with has an exception of its own here."""

from runyard.domain import errors as served
from runyard.sdk import errors


def _below(kind):
    return [kind] + [found for child in kind.__subclasses__() for found in _below(child)]


def test_every_code_of_an_answer_has_its_exception():
    start = {kind.code for kind in _below(served.StartRefused)}
    missing = {kind.code for kind in _below(served.RunyardError)} - start - set(errors.BY_CODE)
    assert missing == set()


def test_codes_are_used_once():
    kinds = _below(errors.RunyardError)
    assert len({kind.code for kind in kinds}) == len(kinds)


def test_status_families_agree_with_the_server():
    for kind in _below(served.RunyardError):
        if kind.code in errors.BY_CODE and kind.status in (401, 404, 409):
            family = errors._BY_STATUS[kind.status]
            assert issubclass(errors.BY_CODE[kind.code], family), kind.code
