"""Templates of pages. All values are escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(template: str, **values: Any) -> str:
    """Render a template of ``assets``; values are escaped, so that none can inject HTML."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)
