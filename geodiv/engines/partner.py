"""The library behind an engine, imported when the engine is chosen."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import UsageError


def partner(library: str, extra: str) -> Any:
    """The library as a module.

    Raises
    ------
    UsageError
        It is not installed, with the command that does so.
    """
    try:
        return importlib.import_module(library)
    except ImportError:
        raise UsageError(
            f"engine {extra!r} needs {library}, which is not installed: pip install 'geodiv[{extra}]'."
        ) from None
