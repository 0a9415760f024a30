"""The grid of a sweep: which options vary, and all combinations of their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from celstack.errors import CelstackError, Problem
from celstack.recipe.overrides import Override, parse
from celstack.text import format_value

OPTION = "--grid"
MOST = 1000
"""More runs than these are a slip of the keyboard."""
OPENING, CLOSING, QUOTES = "[{", "]}", "\"'"

Cell = tuple[Override, ...]
"""One combination: what its run changes in the recipe, in the order of the axes."""


class Axis(NamedTuple):
    """An option that varies, and the values that it takes."""

    path: str
    values: list[Override]


def read_grid(texts: Sequence[str], fixed: Iterable[Override]) -> list[Axis | Problem]:
    """Read what ``--grid`` says, each time it is given; a mistake takes its axis' place."""
    taken = {one.path: one.option for one in fixed}
    axes: list[Axis | Problem] = []
    for text in texts:
        try:
            axis = _read_axis(text)
            if axis.path in taken:
                raise CelstackError(
                    f"{OPTION} {text}: {taken[axis.path]} says already what {axis.path} is"
                )
            taken[axis.path] = OPTION
            axes.append(axis)
        except CelstackError as error:
            axes.append(Problem("", str(error)))
    return axes


def combine(axes: Sequence[Axis]) -> list[Cell]:
    """Return all combinations of values; those of the last axis vary fastest."""
    count = prod(len(axis.values) for axis in axes)
    if count > MOST:
        raise CelstackError(f"{OPTION}: makes {count:,} runs; {MOST:,} are the most")
    return list(product(*(axis.values for axis in axes)))


def spell(cell: Iterable[Override]) -> str:
    """Say a combination as people do: ``sprites.count = 4, seed = 0``."""
    return ", ".join(f"{one.path} = {format_value(one.value)}" for one in cell)


def split(text: str) -> list[str]:
    """Part a text at its commas, except those inside of brackets, braces and quotes."""
    pieces, depth, quote, escaped = [""], 0, "", False
    for letter in text:
        if letter == "," and not depth and not quote:
            pieces.append("")
            continue
        pieces[-1] += letter
        if quote:
            if letter == quote and not escaped:
                quote = ""
            escaped = letter == "\\" and quote == '"' and not escaped
        elif letter in QUOTES:
            quote = letter
        else:
            depth += (letter in OPENING) - (letter in CLOSING)
    return [piece.strip() for piece in pieces]


def _read_axis(text: str) -> Axis:
    path, equals, values = text.partition("=")
    said = f"{OPTION} {text}"
    if not equals:
        raise CelstackError(f"{said}: write path=value,value,... as in selector.sweeps=1,3")
    pieces = split(values)
    if not all(pieces):
        raise CelstackError(f"{said}: a value is missing; part them with single commas")
    parsed = [parse(f"{path}={piece}", OPTION) for piece in pieces]
    spelt = [repr(one.value) for one in parsed]
    for number, value in enumerate(spelt):
        if value in spelt[:number]:
            raise CelstackError(f"{said}: {format_value(parsed[number].value)} is there twice")
    return Axis(parsed[0].path, parsed)
