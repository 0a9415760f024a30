"""What stops a run from outside, told in a line that says what to change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from celstack.errors import MishapError
from celstack.text import describe_error, describe_os_error

if TYPE_CHECKING:
    from celstack.recipe.assembly import Assembly

# Allocators have an exception of their own here and there, and common words everywhere.
NO_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)
DIED = "DataLoader worker"


def as_mishap(error: BaseException, assembly: Assembly) -> MishapError | None:
    """Tell what an exception means for a run; None where it is nothing of this kind."""
    if isinstance(error, MemoryError) or NO_MEMORY.search(str(error)):
        return MishapError(f"out of memory ({_short(error)}): {_less_memory(assembly)}")
    # A worker that dies while it hands a batch over is a connection that breaks.
    broken = isinstance(error, ConnectionError | EOFError)
    if broken or (isinstance(error, RuntimeError) and DIED in str(error)):
        return MishapError(
            f"a process that loads images died ({_short(error)}); if the machine is short of "
            f"memory, fewer than training.workers = {assembly.training.workers} need less"
        )
    if isinstance(error, OSError):
        return MishapError(describe_os_error(error))
    return error if isinstance(error, MishapError) else None


def _less_memory(assembly: Assembly) -> str:
    size, judged = assembly.training.batch_size, assembly.evaluation.batch_size
    sizes = f"training.batch_size is {size} and evaluation.batch_size {judged}"
    if size == 1:
        return f"{sizes}; a new run needs less with smaller images or fewer sprites"
    return f"{sizes}; a new run needs less with, say, --set training.batch_size={size // 2}"


def _short(error: BaseException) -> str:
    """Return the first sentence of what torch says, without where in its sources it was."""
    text = re.sub(
        r"^\w+: \[enforce fail at [^\]]*\] (\. |err == 0\. )?", "", describe_error(error)
    )
    return re.split(r"\. |\.$", text)[0][:200]
