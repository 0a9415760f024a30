"""Templates: from values to the text of a page. All text is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(template: str, **values: Any) -> str:
    """Fill a template in; whatever a value says, it is shown and never obeyed."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)
