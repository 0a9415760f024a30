"""The report: a run directory as one page."""
