"""The grid of a sweep: the options that vary, and all combinations of their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from celstack.errors import CelstackError, Problem
from celstack.recipe.overrides import Override, parse
from celstack.text import format_value, printable

OPTION = "--grid"
MAX_RUNS = 1000
"""Larger grids are refused as probable mistakes."""
OPENING, CLOSING, QUOTES = "[{", "]}", "\"'"

Cell = tuple[Override, ...]
"""One combination: its overrides of the recipe, in the order of the axes."""


class Axis(NamedTuple):
    """An option that varies, and its values."""

    path: str
    values: list[Override]


def read_grid(texts: Sequence[str], fixed: Iterable[Override]) -> list[Axis | Problem]:
    """Parse the values of ``--grid``; a mistake takes the place of its axis."""
    taken = {one.path: one.option for one in fixed}
    axes: list[Axis | Problem] = []
    for text in texts:
        try:
            axis = _read_axis(text)
            if axis.path in taken:
                by = taken[axis.path]
                raise CelstackError(
                    f"{OPTION} {printable(text)}: {axis.path} is already set by {by}"
                )
            taken[axis.path] = OPTION
            axes.append(axis)
        except CelstackError as error:
            axes.append(Problem("", str(error)))
    return axes


def combine(axes: Sequence[Axis]) -> list[Cell]:
    """Return all combinations of values; those of the last axis vary fastest."""
    count = prod(len(axis.values) for axis in axes)
    if count > MAX_RUNS:
        raise CelstackError(f"{OPTION}: makes {count:,} runs; at most {MAX_RUNS:,} are allowed")
    return list(product(*(axis.values for axis in axes)))


def format_cell(cell: Iterable[Override]) -> str:
    """Format a combination: ``sprites.count = 4, seed = 0``."""
    return ", ".join(f"{one.path} = {format_value(one.value)}" for one in cell)


def split_values(text: str) -> list[str]:
    """Split a text at its commas, except those inside brackets, braces and quotes."""
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
    place = f"{OPTION} {printable(text)}"
    if not equals:
        raise CelstackError(
            f"{place}: expected path=value,value,... such as selector.sweeps=1,3"
        )
    pieces = split_values(values)
    if not all(pieces):
        raise CelstackError(f"{place}: a value is missing; separate values with single commas")
    parsed = [parse(f"{path}={piece}", OPTION) for piece in pieces]
    texts = [repr(one.value) for one in parsed]
    for number, value in enumerate(texts):
        if value in texts[:number]:
            raise CelstackError(f"{place}: {format_value(parsed[number].value)} is given twice")
    return Axis(parsed[0].path, parsed)
