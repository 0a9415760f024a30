"""The report: from a run directory to pages that open in any browser, from disk."""
