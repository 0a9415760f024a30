"""BrowserCode: the JavaScript version of a transform, for the scene editor of reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs


@attrs.frozen
class BrowserCode:
    """A JavaScript function ``(options, celstack) => transform``, and its options.

    The source is one expression. ``options`` must be serializable as JSON; ``celstack`` has
    the functions ``softclip``, ``softexp``, ``offHorizon`` (``clamp_depth`` in Python),
    ``chained`` (``compose`` in Python) and ``inverse``. Parameters are arrays of numbers.
    The object that the function returns has these methods:

    - ``pixels(image, params)``, for a transform that is not a warp: return the changed image
      as a new object. Images have ``depth``, ``height``, ``width`` and ``data``, a
      Float32Array of one plane after the other, alpha last;
    - ``recolour(from, to)``, optional: return the parameters that turn one color into the
      other;
    - ``pull(points, params)``, for a warp: replace x and y of each point in place by the
      point of the sprite;
    - ``follow(params, matrix)``, if the warp can be edited: return the parameters whose map
      is nearest to that of ``params`` after ``matrix``. Matrices are 2 x 3, in an array of
      six numbers, row by row;
    - ``matrix(params)``, if ``follow`` may be inexact: return the warp as a matrix. The rest
      is then passed on to the warps before this one.
    """

    source: str
    options: Mapping[str, Any] = attrs.field(factory=dict)

    @classmethod
    def beside(cls, module: str, **options: Any) -> BrowserCode:
        """Read the source from the file beside a plugin's module, with the suffix ``.js``.

        The plugin's distribution has to list the file as package data::

            BrowserCode.beside(__file__, channels=self.channels)
        """
        return cls(Path(module).with_suffix(".js").read_text(encoding="utf-8"), options)
