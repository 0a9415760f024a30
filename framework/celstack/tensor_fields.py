"""Records of tensors: one function for all tensor fields of scenes, batches and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs
from torch import Tensor

Record = TypeVar("Record")


def tensor_fields(record: Any) -> dict[str, Tensor]:
    """Return the fields of an attrs instance that are not None, by name, in their order."""
    fields = {field.name: getattr(record, field.name) for field in attrs.fields(type(record))}
    return {name: value for name, value in fields.items() if value is not None}


def map_tensors(function: Callable[..., Tensor], record: Record, *others: Record) -> Record:
    """Apply a function to every field of a record that is not None.

    For example::

        on_gpu = map_tensors(lambda tensor: tensor.to("cuda"), scene)
        both = map_tensors(lambda *tensors: torch.cat(tensors), scene, other)

    Args:
        function: Called with a field of the record and the same field of all the others.
        record: An attrs instance whose fields are tensors or None, such as a Scene.
        others: Records of the same class with the same fields.

    Returns:
        A new record of the same class; fields that are None in ``record`` stay None.
    """
    changed: dict[str, Any] = {
        name: function(value, *(getattr(other, name) for other in others))
        for name, value in tensor_fields(record).items()
    }
    return attrs.evolve(record, **changed)  # type: ignore[misc]
