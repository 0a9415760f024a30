"""A predictor that forgot the mark on its hook."""

from celstack import Predictor


def celstack_predictors():
    """Be overlooked."""
    return {"no_hook": Predictor}
