"""The kinds of parts a plugin may provide."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """One kind of part: its name in entry points, its interface, its hook."""

    name: str
    interface: str

    @property
    def title(self) -> str:
        """Name the kind with its article."""
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"

    @property
    def hook(self) -> str:
        """Name the hook through which plugins provide this kind."""
        return f"celstack_{self.name}s"

    def load_interface(self) -> type[Any]:
        """Import the interface; this is what brings torch in."""
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
