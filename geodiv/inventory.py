"""Inventory: the places of a policy's maps by the cells and values of a table."""

from __future__ import annotations

import numpy as np

from .arrays import CSR
from .errors import PolicyError, did_you_mean, listed
from .places import Places
from .policy import Policy
from .tabulation import Tabulation


def places_of(table: Tabulation, policy: Policy) -> tuple[CSR | None, ...]:
    """Places of each value in each cell, for each attribute of a table; None where the policy has no map of it.

    Returns
    -------
    tuple over attributes of (cells, values) sparse int64, or None
        Places in cells without visits are left out.

    Raises
    ------
    PolicyError
        A map of an attribute or of a value that the table does not have, or one that meets none of its cells.
    """
    columns = [attribute.column for attribute in table.attributes]
    maps = {places.attribute: places for places in policy.places}
    if strange := sorted(set(maps) - set(columns)):
        raise PolicyError(
            f"places: expected an attribute of the visits, got {listed(strange)}; there is {listed(columns)}."
            + did_you_mean(strange[0], columns)
        )
    return tuple(_by_cell(table, a, maps[c]) if c in maps else None for a, c in enumerate(columns))


def _by_cell(table: Tabulation, attribute: int, places: Places) -> CSR:
    values = table.spaces[attribute].values
    codes = {value: i for i, value in enumerate(values)}
    strange = sorted(set(places.values) - set(codes))
    declared = table.attributes[attribute]
    if strange and declared.taxonomy is not None and getattr(declared, "unknown", "error") == "error":
        raise PolicyError(
            f"places of '{places.attribute}': {listed(strange)} not among its values; map each category of the "
            f"places to one of them.{did_you_mean(strange[0], values)}"
        )
    rows = {str(cell): i for i, cell in enumerate(table.cells)}
    if len(rows) and places.inventory and not any(cell in rows for cell in places.inventory):
        raise PolicyError(
            f"places of '{places.attribute}': expected ids of the table's cells, found none of them. Is the map of "
            "the same area and grid?"
        )
    found = [
        (rows[cell], codes[value], n)
        for cell, counts in places.inventory.items()
        if cell in rows
        for value, n in counts.items()
        if value in codes
    ]
    row, code, n = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return CSR((n, (row, code)), shape=(len(rows), len(values)))
