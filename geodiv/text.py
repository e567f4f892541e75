"""Values as text: how values, orders, missing markers and taxonomy entries are compared and written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

MISSING = "(missing)"
"""The value that a missing value is: a value of its own, in the sensitive tier."""


_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls, line ends, marks that turn the direction of writing, invisible tags, and halves of a pair."""


def printable(text: str) -> str:
    """The text on one line, what would steer a terminal or a reader's eye written as JSON and TOML escape it.

    A name out of a file is data: printed, it must neither colour the screen, nor begin a line of its own, nor turn
    the words that follow it around.

    Examples
    --------
    >>> print(printable("clinic\\x1b[31m\\nok"), printable("Café"))
    clinic\\u001b[31m\\u000aok Café
    """
    return _UNPRINTABLE.sub(_escaped, text)


def in_lines(lines: Iterable[str]) -> str:
    """These lines as one text for a terminal: each stays one line, whatever names stand in it."""
    return "\n".join(printable(line) for line in lines)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def as_text(value: Any) -> str:
    """The text of one value, the same whether it came as an integer, a float or a string.

    Parameters
    ----------
    value : str, bool, int, float, Decimal, or anything with a ``str``
        A whole number, also a float, is written without a decimal point; booleans as 'true' and 'false';
        other floats as Python's ``str``. None and NaN are `MISSING`.

    Examples
    --------
    >>> as_text(1.0), as_text(-999), as_text(True), as_text("007"), as_text(float("nan"))
    ('1', '-999', 'true', '007', '(missing)')
    """
    if isinstance(value, str):
        return str(value)
    if value is None or str(value) == "<NA>" or value != value:
        return MISSING
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return "true" if value else "false"
    if isinstance(value, float | Decimal) or type(value).__name__.startswith("float"):
        number = float(value)
        if math.isfinite(number) and number == int(number):
            return str(int(value))
        return str(number) if not isinstance(value, Decimal) else str(value.normalize())
    return str(value)
