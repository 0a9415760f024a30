"""A prototype whose hook asks for something that is not told."""

from celstack import Prototype, hookimpl


@hookimpl
def celstack_prototypes(weather):
    """Provide it when it rains."""
    return {"strange_argument": Prototype} if weather == "rain" else {}


@hookimpl
def celstack_prototype():
    """Be misspelt as well."""
