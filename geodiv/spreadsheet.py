"""Texts in CSV files that spreadsheets open: a name that begins like a formula is data, and must stay it."""

from __future__ import annotations

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


def guarded(text: str) -> str:
    """The text with an apostrophe before it when a spreadsheet would run it; numbers stay as they are.

    Examples
    --------
    >>> guarded("=cmd|' /C calc'!A0"), guarded("-999"), guarded("cafe")
    ("'=cmd|' /C calc'!A0", '-999', 'cafe')
    """
    return f"'{text}" if _runs(text) else text


def unguarded(text: str) -> str:
    """The text that `guarded` was given."""
    return text[1:] if text.startswith("'") and _runs(text) else text


def _runs(text: str) -> bool:
    rest = text.lstrip("'")
    if not rest.startswith(FORMULA):
        return False
    try:
        float(rest)
    except ValueError:
        return True
    return rest[0] in "\t\r"
