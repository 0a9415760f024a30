import pytest

from celstack.cli.output import printed_warnings
from celstack.errors import CelstackError
from celstack.hookspecs import hookimpl
from celstack.interfaces.observer import Observer
from celstack.training.callbacks import CallbackList


class Listener(Observer):
    """Writes down who heard what."""

    def __init__(self, own="", heard=None):
        self.own, self.heard = own, [] if heard is None else heard

    @hookimpl
    def celstack_run_stopped(self, reason, step):
        self.heard.append((self.own, step, reason))


class Clumsy(Observer):
    """Always fails."""

    @hookimpl
    def celstack_run_stopped(self):
        raise ValueError("first\nsecond")

    @hookimpl
    def celstack_step_finished(self, step):
        raise ValueError("again")


class Interrupting(Observer):
    """Presses Ctrl-C."""

    @hookimpl
    def celstack_run_stopped(self):
        raise KeyboardInterrupt


def test_an_observer_hears_what_it_wants_in_any_order():
    listener = Listener()

    CallbackList([listener]).notify("celstack_run_stopped", step=3, reason="enough")

    assert listener.heard == [("", 3, "enough")]


def test_observers_hear_in_the_order_of_the_recipe():
    heard = []
    callbacks = CallbackList([Listener(own, heard) for own in ("first", "second", "third")])

    callbacks.notify("celstack_run_stopped", step=0, reason="")

    assert [own for own, *_ in heard] == ["first", "second", "third"]


def test_nobody_need_listen():
    CallbackList([]).notify("celstack_run_stopped", step=0, reason="")


def test_one_that_raises_is_reported_in_one_line(capsys):
    with printed_warnings():
        CallbackList([Clumsy()]).notify("celstack_run_stopped", step=0, reason="")

    assert capsys.readouterr().err == (
        "celstack: warning: observer Clumsy failed in celstack_run_stopped and was dropped: "
        "ValueError: first second\n"
    )


def test_one_that_raised_hears_nothing_more(capsys):
    callbacks = CallbackList([Clumsy()])
    callbacks.notify("celstack_run_stopped", step=0, reason="")

    with printed_warnings():
        callbacks.notify("celstack_run_stopped", step=1, reason="")
        callbacks.notify("celstack_step_finished", step=1, loss=None, images=1)

    assert capsys.readouterr().err == ""


def test_the_others_go_on():
    before, after = Listener(), Listener()
    callbacks = CallbackList([before, Clumsy(), after])

    callbacks.notify("celstack_run_stopped", step=1, reason="")
    callbacks.notify("celstack_run_stopped", step=2, reason="")

    assert [step for _, step, _ in before.heard] == [1, 2]
    assert [step for _, step, _ in after.heard] == [1, 2]


def test_an_interruption_is_not_swallowed():
    callbacks = CallbackList([Interrupting()])

    with pytest.raises(KeyboardInterrupt):
        callbacks.notify("celstack_run_stopped", step=0, reason="")


def test_a_misspelt_hook_is_refused():
    class Typo(Observer):
        @hookimpl
        def celstack_run_stoped(self): ...

    with pytest.raises(
        CelstackError, match="observer Typo: unknown hook 'celstack_run_stoped'"
    ):
        CallbackList([Listener(), Typo(), Listener()])


def test_an_argument_that_a_hook_has_not_got_is_refused():
    class Curious(Observer):
        @hookimpl
        def celstack_run_stopped(self, weather): ...

    with pytest.raises(CelstackError, match=r"observer Curious: .*weather"):
        CallbackList([Curious()])
