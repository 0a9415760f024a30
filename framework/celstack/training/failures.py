"""Turn exceptions caused from outside a run into errors that say what to change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from celstack.errors import RecoverableError
from celstack.text import describe_error, describe_os_error

if TYPE_CHECKING:
    from celstack.recipe.assembly import Assembly

# Allocators raise different exceptions, but their messages share these words.
OUT_OF_MEMORY = re.compile(
    r"out of memory|can't allocate memory|not enough memory|storage size .* overflowed",
    re.IGNORECASE,
)
WORKER_DIED = "DataLoader worker"


def classify_failure(error: BaseException, assembly: Assembly) -> RecoverableError | None:
    """Return what an exception means for a run, or None if it is a bug of the program.

    Recoverable are: out of memory, a data loader worker that died, and errors of the operating
    system such as a full disk. The run can be resumed once the cause is removed.
    """
    if isinstance(error, MemoryError) or OUT_OF_MEMORY.search(str(error)):
        return RecoverableError(f"out of memory ({_summary(error)}): {_memory_hint(assembly)}")
    # A worker that dies while it sends a batch breaks the connection.
    broken = isinstance(error, ConnectionError | EOFError)
    if broken or (isinstance(error, RuntimeError) and WORKER_DIED in str(error)):
        return RecoverableError(
            f"a data loader worker died ({_summary(error)}); if the machine is short of "
            f"memory, use fewer than training.workers = {assembly.training.workers}"
        )
    if isinstance(error, OSError):
        return RecoverableError(describe_os_error(error))
    return error if isinstance(error, RecoverableError) else None


def _memory_hint(assembly: Assembly) -> str:
    size, evaluated = assembly.training.batch_size, assembly.evaluation.batch_size
    sizes = f"training.batch_size is {size} and evaluation.batch_size {evaluated}"
    if size == 1:
        return f"{sizes}; start a new run with smaller images or fewer sprites"
    return f"{sizes}; start a new run with, for example, --set training.batch_size={size // 2}"


def _summary(error: BaseException) -> str:
    """Return the first sentence of torch's message, without the place in its sources."""
    text = re.sub(
        r"^\w+: \[enforce fail at [^\]]*\] (\. |err == 0\. )?", "", describe_error(error)
    )
    return re.split(r"\. |\.$", text)[0][:200]
