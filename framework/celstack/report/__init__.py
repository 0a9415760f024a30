"""The report: run folders, comparisons and sweeps as self-contained HTML pages.

``make_page`` is public, for observers. Uses run folders, recipes and evaluation. Page
templates, styles and scripts are in ``assets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celstack.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from celstack.report.run_page import RunStatus, make_page

# Imported when first used, to keep imports of the package cheap.
_HOME = {
    "RunStatus": "run_page",
    "make_page": "run_page",
}

__all__ = [
    "RunStatus",
    "make_page",
]

__getattr__ = lazy_getattr(__name__, _HOME)
