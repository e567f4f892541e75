"""Grids: where the cells are. Coordinates or ids in; keys, ids, outlines and neighbours out, all as arrays.

The names below are loaded when first asked for, so that ``import geodiv.grids`` loads neither h3 nor shapely.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .column import ColumnGrid
    from .h3 import H3Grid
    from .protocol import Grid
    from .square import SquareGrid
    from .zones import ZoneGrid

__all__ = ["ColumnGrid", "Grid", "H3Grid", "SquareGrid", "ZoneGrid"]

_HOME = {
    "ColumnGrid": "column",
    "Grid": "protocol",
    "H3Grid": "h3",
    "SquareGrid": "square",
    "ZoneGrid": "zones",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
