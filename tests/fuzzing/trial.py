"""Try one input after another: each is handled, or refused in words; all else is a fault."""

import os
import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from random import Random

from celstack.errors import CelstackError, RecipeError

LIMIT = 10.0
"""Seconds that the processor may be busy with an input."""
LONGEST = 1000
"""Letters of a message that are still read."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGING = {"os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "shutil.rmtree"}
PAIRING = {"os.rename", "os.symlink", "os.link"}
NEVER = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect"}


class Kind:
    """A kind of inputs. ``attempt`` makes one and gives it to those who read such.

    All that it writes lies in ``folder``; ``leftovers`` lists what should not be there then.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def attempt(self, random: Random) -> None:
        raise NotImplementedError

    def leftovers(self) -> list[Path]:
        return []


class OverdueError(BaseException):
    """An input took too long; nobody who expects errors catches this."""


def judge(kind, seed):
    """Try the input of a seed; return whether it was handled or refused, or raise."""
    verdict = "handled"
    with limited(LIMIT), confined(kind.folder):
        try:
            kind.attempt(Random(seed))
        except CelstackError as error:
            check_clear(error)
            verdict = "refused"
    left = kind.leftovers()
    assert not left, f"left over: {left}"
    return verdict


def check_clear(error):
    """Demand one line, or one for each problem, that a person can read."""
    text = str(error)
    lines = text.splitlines()
    if isinstance(error, RecipeError):
        assert len(lines) == len(error.problems) + (len(error.problems) > 1), text
    else:
        assert len(lines) == 1, f"not one line: {text!r}"
    assert text.isprintable() or len(lines) > 1, f"unprintable: {text!r}"
    assert all(0 < len(line) < LONGEST for line in lines), f"long: {text[:300]!r}"


@contextmanager
def limited(seconds):
    """Raise OverdueError when this takes longer, where there are alarms.

    Time of the processor, because others may be at work on the machine.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def ring(number, frame):
        raise OverdueError(f"busy for more than {seconds} seconds")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class _Watch:
    """Hears of every file that Python opens or changes; while told to, it notes strays."""

    def __init__(self):
        self.folder, self.strays, self.hears = None, [], False

    def start(self, folder):
        if not self.hears:
            sys.addaudithook(self.hear)
            self.hears = True
        self.folder, self.strays = os.path.realpath(folder), []

    def stop(self):
        self.folder = None

    def hear(self, event, facts):
        if self.folder is None:
            return
        if event == "open":
            path, mode, flags = facts
            if flags & WRITING or (mode and set(mode) & set("wax+")):
                self.note(event, path)
        elif event in CHANGING:
            # What is relative to an open folder was noted when its top was.
            if facts[-1] in (-1, None):
                self.note(event, facts[0])
        elif event in PAIRING:
            self.note(event, facts[0])
            self.note(event, facts[1])
        elif event in NEVER:
            self.strays.append(f"{event} {facts!r}")

    def note(self, event, path):
        if isinstance(path, int):
            return
        real = os.path.realpath(os.fsdecode(path))
        inside = real == self.folder or real.startswith(self.folder + os.sep)
        if not inside and "__pycache__" not in real and real != os.devnull:
            self.strays.append(f"{event} {real}")


WATCH = _Watch()


@contextmanager
def confined(folder):
    """Demand that nothing is written outside a folder, and no other program started."""
    WATCH.start(folder)
    try:
        yield
    finally:
        WATCH.stop()
    assert not WATCH.strays, f"outside {folder}: {WATCH.strays}"
