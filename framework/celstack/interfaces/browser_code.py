"""Browser code: what a transform brings along so that a page can do the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs


@attrs.frozen
class BrowserCode:
    """A JavaScript function from ``(options, celstack)`` to a transform, and its options.

    The source is one expression. ``options`` are what JSON can hold; ``celstack`` has
    ``softclip``, ``softexp``, ``offHorizon``, ``chained`` and ``inverse``, which are those
    of Python. Parameters are arrays of numbers. What the function returns has

    - ``pixels(image, params)``, of a transform of pixels: the changed image, as a new one.
      Images have ``depth``, ``height``, ``width`` and ``data``, a Float32Array of one plane
      after the other, alpha last;
    - ``recolour(from, to)``, if a colour can be turned into another: the parameters that do;
    - ``pull(points, params)``, of a warp: x and y of one point after the other are replaced
      by where the point looks;
    - ``follow(params, matrix)``, if a warp can be edited: the parameters that look where
      these look from ``matrix`` times the point, as nearly as can be. Matrices are 2 x 3,
      row by row, in an array of six;
    - ``matrix(params)``, if ``follow`` may leave something out: the warp as a matrix. What
      was left out is then passed on to the warps before.
    """

    source: str
    options: Mapping[str, Any] = attrs.field(factory=dict)

    @classmethod
    def beside(cls, module: str, **options: Any) -> BrowserCode:
        """Read the file that stands beside a plugin's own, ``__file__``, and ends in .js.

        A package has to list such files as its data, or they are not installed.
        """
        return cls(Path(module).with_suffix(".js").read_text(encoding="utf-8"), options)
