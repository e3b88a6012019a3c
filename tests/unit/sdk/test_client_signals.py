"""How a session takes SIGINT, SIGTERM and SIGHUP, and gives them back."""

import os
import signal
import threading

import pytest

from runyard.sdk.taken_signals import TAKEN, TakenSignals


@pytest.fixture(autouse=True)
def _handlers():
    """What they were before is restored, whatever the test does."""
    before = {number: signal.getsignal(number) for number in TAKEN}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def taken():
    notes, left = [], []
    made = TakenSignals(notes.append, left.append)
    made.notes, made.left = notes, left
    made.take()
    yield made
    made.give_back()


def test_while_noted_nothing_is_interrupted(taken):
    with taken.noted():
        for number in TAKEN:
            os.kill(os.getpid(), number)
    assert taken.notes == list(TAKEN)


def test_at_other_times_they_raise(taken):
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    for number, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        with pytest.raises(SystemExit) as leaving:
            os.kill(os.getpid(), number)
        assert leaving.value.code == code
    assert taken.left == [signal.SIGTERM, signal.SIGHUP]
    assert taken.notes == []


def test_a_handler_of_the_callers_own_is_called():
    heard = []
    signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    taken = TakenSignals(heard.append, heard.append)
    taken.take()
    os.kill(os.getpid(), signal.SIGTERM)
    taken.give_back()
    os.kill(os.getpid(), signal.SIGTERM)
    assert heard == [signal.SIGTERM] * 2


def test_one_that_was_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    taken = TakenSignals(pytest.fail, pytest.fail)
    taken.take()
    os.kill(os.getpid(), signal.SIGHUP)
    taken.give_back()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_what_somebody_set_meanwhile_stays(taken):
    def other(*_):
        pass

    signal.signal(signal.SIGTERM, other)
    taken.give_back()
    assert signal.getsignal(signal.SIGTERM) is other
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_only_the_main_thread_takes_them():
    before = [signal.getsignal(number) for number in TAKEN]

    def take():
        made = TakenSignals(pytest.fail, pytest.fail)
        made.take()
        made.give_back()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    assert [signal.getsignal(number) for number in TAKEN] == before


def test_two_at_once_in_any_order():
    first = TakenSignals(pytest.fail, lambda _: None)
    second = TakenSignals(pytest.fail, lambda _: None)
    first.take()
    second.take()
    with pytest.raises(SystemExit):
        os.kill(os.getpid(), signal.SIGTERM)
    first.give_back()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    second.give_back()


@pytest.mark.parametrize("noting", [True, False])
def test_a_fork_is_ended_by_them_as_ever(taken, noting):
    if noting:
        taken.note_from_now_on()
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(tell, b"+")
        while True:
            signal.pause()
    os.read(told, 1)
    os.kill(pid, signal.SIGTERM)
    assert os.waitpid(pid, 0)[1] == signal.SIGTERM
    os.close(told)
    os.close(tell)
