"""Run the conformance checks on installed plugins, made with as few options as possible."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Any

import celstack.testing
from celstack.errors import CelstackError
from celstack.interfaces.compositor import Compositor
from celstack.interfaces.dataset import Dataset
from celstack.interfaces.encoder import Encoder
from celstack.interfaces.predictor import Predictor
from celstack.interfaces.prototype import Prototype
from celstack.interfaces.selector import Selector
from celstack.interfaces.transform import Transform
from celstack.registry.coerce import CoercionError, coerce
from celstack.registry.signature import REQUIRED, inspect_class
from celstack.testing.model import PlainSelector
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainEncoder,
    PlainPredictor,
    PlainPrototype,
    PlainTransform,
)
from celstack.text import describe_error

PLAIN_PARTS = {
    Compositor: PlainCompositor,
    Dataset: PlainDataset,
    Encoder: PlainEncoder,
    Predictor: PlainPredictor,
    Prototype: PlainPrototype,
    Selector: PlainSelector,
    Transform: PlainTransform,
}
NUMBERS = (3, 2, 1, 0.5)
"""What is tried for required options that are numbers, the first that is accepted."""


class CannotBeCheckedError(Exception):
    """A part that cannot be made or checked without knowing more about it."""


def check_laws(kind: str, part_class: type[Any]) -> None:
    """Make a part and run the check of its kind.

    Options without a default get a small number or a plain part. What the part prints is not
    shown.

    Raises:
        AssertionError: The part breaks a law, or fails.
        CannotBeCheckedError: It needs options, files or images that are not there.
    """
    check = getattr(celstack.testing, f"check_{kind}")
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        part = _make(part_class)
        if isinstance(part, Dataset) and part.generated:
            raise CannotBeCheckedError("it would generate all of its images")
        try:
            check(part)
        except AssertionError:
            raise
        except (CelstackError, OSError) as error:
            if isinstance(part, Dataset):
                raise CannotBeCheckedError(str(error)) from error
            raise AssertionError(f"it fails: {describe_error(error)}") from error
        except Exception as error:
            raise AssertionError(f"it fails: {describe_error(error)}") from error


def _make(part_class: type[Any]) -> Any:
    options, unknown = {}, []
    for option in inspect_class(part_class).options:
        if option.default is REQUIRED:
            try:
                options[option.name] = _example(option.annotation)
            except LookupError:
                unknown.append(option.name)
    if unknown:
        raise CannotBeCheckedError(f"it needs values for {', '.join(unknown)}")
    try:
        return part_class(**options)
    except Exception as error:
        text = describe_error(error)
        raise CannotBeCheckedError(f"it cannot be made with {options}: {text}") from error


def _example(annotation: Any) -> Any:
    """Return a value that an option accepts, or raise LookupError."""
    if annotation in PLAIN_PARTS:
        return PLAIN_PARTS[annotation]()
    for number in NUMBERS if annotation is not Any else ():
        with suppress(CoercionError):
            return coerce(number, annotation)
    raise LookupError
