"""The report: run folders, comparisons and sweeps as self-contained HTML pages.

``make_page`` is public, for observers. Uses run folders, recipes and evaluation. Page
templates, styles and scripts are in ``assets``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celstack.report.run_page import State, make_page

# Imported when first used, to keep imports of the package cheap.
_HOME = {
    "State": "run_page",
    "make_page": "run_page",
}

__all__ = [
    "State",
    "make_page",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'celstack.report' has no attribute '{name}'")
    return getattr(import_module(f"celstack.report.{_HOME[name]}"), name)
