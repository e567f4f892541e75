"""Values as text: how values, orders, missing markers and taxonomy entries are compared and written."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

MISSING = "(missing)"
"""The value that a missing value is: a value of its own, in the sensitive tier."""


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
