"""The kinds of parts that plugins provide."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """One kind of part: its name in entry points, and its interface."""

    name: str
    interface: str

    @property
    def title(self) -> str:
        """Return the name with its article."""
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"

    @property
    def hook(self) -> str:
        """Return the name of the hook that provides parts of this kind."""
        return f"celstack_{self.name}s"

    def load_interface(self) -> type[Any]:
        """Import the interface, and torch with it."""
        module = import_module(f"celstack.interfaces.{self.name}")
        interface: type[Any] = getattr(module, self.interface)
        return interface


KINDS = {
    kind.name: kind
    for kind in (
        Kind("dataset", "Dataset"),
        Kind("prototype", "Prototype"),
        Kind("transform", "Transform"),
        Kind("compositor", "Compositor"),
        Kind("selector", "Selector"),
        Kind("predictor", "Predictor"),
        Kind("encoder", "Encoder"),
        Kind("metric", "Metric"),
        Kind("observer", "Observer"),
    )
}

KIND_OF_INTERFACE = {kind.interface: kind for kind in KINDS.values()}
