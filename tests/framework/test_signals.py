import signal
import sys
import threading

import pytest

from celstack.signals import INTERRUPTED_TWICE, Terminated, heeding_termination, uninterrupted

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT can be sent there")


def press():
    signal.raise_signal(signal.SIGINT)


def test_an_interruption_waits_for_the_end():
    story = []

    with pytest.raises(KeyboardInterrupt), uninterrupted():
        press()
        story.append("done")

    assert story == ["done"]


def test_a_second_one_does_not_wait():
    story = []

    with pytest.raises(KeyboardInterrupt, match=INTERRUPTED_TWICE), uninterrupted():
        press()
        press()
        story.append("done")

    assert story == []


def test_afterwards_nothing_waits():
    with uninterrupted():
        pass

    with pytest.raises(KeyboardInterrupt):
        press()


def test_an_error_is_not_hidden_by_an_interruption():
    with pytest.raises(ValueError, match="wrong"), uninterrupted():
        press()
        raise ValueError("wrong")

    with pytest.raises(KeyboardInterrupt):
        press()


def test_who_ignores_interruptions_goes_on_doing_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with uninterrupted():
            press()
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_may_ask_too():
    done = []

    def work():
        with uninterrupted():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert done == [True]


@pytest.fixture
def heeding():
    """Heed SIGTERM in a test, as runs do."""
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with heeding_termination():
        yield
    signal.signal(signal.SIGTERM, before)


def terminate():
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.usefixtures("heeding")
def test_a_termination_is_an_interruption_of_its_own():
    with pytest.raises(Terminated):
        terminate()


@pytest.mark.usefixtures("heeding")
def test_a_termination_waits_too():
    story = []

    with pytest.raises(Terminated), uninterrupted():
        terminate()
        story.append("done")

    assert story == ["done"]


@pytest.mark.usefixtures("heeding")
def test_after_a_termination_ctrl_c_does_not_wait():
    story = []

    with pytest.raises(KeyboardInterrupt), uninterrupted():
        terminate()
        press()
        story.append("done")

    assert story == []


def test_who_has_a_way_of_his_own_with_terminations_keeps_it():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with heeding_termination():
            terminate()
    finally:
        signal.signal(signal.SIGTERM, before)

    assert heard == [signal.SIGTERM]


def test_when_a_run_is_over_terminations_are_what_they_were():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with heeding_termination():
            pass
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
