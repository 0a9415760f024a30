"""The place of ``Catalog`` in 0.1.0, for tests of plugins that were written then."""

from celstack.registry.catalog import Catalog

__all__ = ["Catalog"]
