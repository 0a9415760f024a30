import signal
import sys
import threading

import pytest

from celstack.interruption import uninterrupted

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

    with pytest.raises(KeyboardInterrupt), uninterrupted():
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
