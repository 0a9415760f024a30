"""Start commands of Celstack as forked processes, and end them by signals.

Everything is imported once, in this process: a command starts in milliseconds, and a trial
takes a second or two. The processes are real, and so are their files and their ends.
"""

import os
import signal
import subprocess
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

import torch

from celstack import cli

SECONDS = 120.0
"""How long anything may take, on a machine with other work."""
KILLED = {-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM, 128 + signal.SIGINT}
"""Exit codes of commands that were killed, or stopped as asked."""
SIGNALS = (signal.SIGKILL,) * 3 + (signal.SIGTERM, signal.SIGINT)


class Fault(Exception):
    """Something else happened than what should."""


def warm_up():
    """Import what commands import, and what torch imports when an optimizer first steps."""
    for name in ("training.loop", "evaluation.visualize", "report.run_page", "runs.sweep.run"):
        import_module(f"celstack.{name}")
    torch.set_num_threads(1)
    weight = torch.nn.Parameter(torch.zeros(1))
    weight.grad = torch.zeros(1)
    torch.optim.Adam([weight], fused=True).step()


def start(program, arguments, log, environment=None):
    """Fork a command; return its process, which leads a group of its own."""
    process = os.fork()
    if process:
        return process
    try:
        os.setpgid(0, 0)
        os.environ.update(environment or {})
        written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(written, 1)
        os.dup2(written, 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = [program, *map(str, arguments)]
        getattr(cli, program)()
    except SystemExit as stopped:
        os._exit(int(stopped.code or 0))
    except KeyboardInterrupt:  # before the command began, as while Python starts
        os._exit(128 + signal.SIGINT)
    except BaseException:
        traceback.print_exc()
    os._exit(99)


def wait(process):
    """Wait for the end of a process; return its exit code, negative for a signal."""
    end = time.monotonic() + SECONDS
    while not (found := os.waitpid(process, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise Fault(f"still running after {SECONDS:.0f} seconds")
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(found[1])


def is_alive(process):
    """Tell whether a child process is still running, without waiting for it."""
    return Path(f"/proc/{process}").exists() and state_of(process) != "Z"


def state_of(process):
    return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]


def until(found, process, seconds=SECONDS):
    """Wait until something is found, or the process has ended; return what was found."""
    end = time.monotonic() + seconds
    while not (result := found()):
        if not is_alive(process):
            return found()
        if time.monotonic() > end:
            raise Fault("does not begin")
        time.sleep(0.0005)
    return result


def strike(process, random, seconds):
    """Send a signal at a random moment; return whether it ended the process, or raise."""
    time.sleep(random.uniform(0.0, seconds))
    number = random.choice(SIGNALS)
    os.kill(process, number)
    code = wait(process)
    if code not in KILLED | {0}:
        raise Fault(f"exit code {code} after {signal.Signals(number).name}")
    return code != 0


def finish(program, arguments, log, environment=None):
    """Run a command to its end, which must be a good one."""
    code = wait(start(program, arguments, log, environment))
    if code:
        raise Fault(f"exit code {code}: {program} {' '.join(map(str, arguments))}")


def others(word):
    """List the processes, other than this one, that have a word in their command line."""
    command = ["pgrep", "-f", "--", word]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return [int(one) for one in found.stdout.split() if int(one) != os.getpid()]
