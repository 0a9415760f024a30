"""The report: run folders, comparisons and sweeps as self-contained HTML pages.

Uses run folders, recipes and evaluation. Page templates, styles and scripts are in ``assets``.
"""
