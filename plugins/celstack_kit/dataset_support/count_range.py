"""Parse the option that says how many objects an image shows."""

from celstack import CelstackError
from celstack.text import format_value


def parse_count_range(option: str, value: int | tuple[int, int], limit: int) -> tuple[int, int]:
    """Return the minimum and maximum of a number or a range, or raise CelstackError.

    Args:
        option: Name of the option, for the message.
        value: The number, or minimum and maximum.
        limit: The largest number allowed.
    """
    low, high = (value, value) if isinstance(value, int) else value
    if not 1 <= low <= high <= limit:
        text = f"must be 1 to {limit}, or the least and the most of these"
        raise CelstackError(f"{option}: {text}, not {format_value(value)}")
    return low, high
