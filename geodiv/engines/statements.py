"""The statements of engines that speak SQL, short and in words that DuckDB and Spark both know.

The tables they name:

- ``visits``: cell, v0, v1, ... (a value of each attribute) and person, one row a visit;
- ``contributions``: the same columns, each combination once, and how many ``visits`` are behind it;
- ``mapping``: cell, value and of_group: which (cell, value) pairs feed which group.

Distinct persons are counted at two levels, ``GROUP BY keys, person`` and then ``COUNT(*)``.
"""

from __future__ import annotations


def columns(attributes: int) -> tuple[str, ...]:
    """The columns of ``contributions`` that tell one from another."""
    return ("cell", *(f"v{a}" for a in range(attributes)), "person")


def distinct(attributes: int) -> str:
    """Distinct contributions of the visits."""
    keys = ", ".join(columns(attributes))
    return f"SELECT {keys}, COUNT(*) AS visits FROM visits GROUP BY {keys}"


def pairs(attribute: int, attributes: int) -> str:
    """cell, value, persons and visits of each (cell, value) pair of an attribute, one of so many."""
    each = f"SELECT cell, v{attribute} AS value, person, visits FROM contributions"
    if attributes > 1:  # a person may be there with several values of the others
        each = (
            f"SELECT cell, v{attribute} AS value, person, SUM(visits) AS visits FROM contributions "
            f"GROUP BY cell, v{attribute}, person"
        )
    return (
        "SELECT cell, value, COUNT(*) AS persons, CAST(SUM(visits) AS BIGINT) AS visits "
        f"FROM ({each}) AS each_person GROUP BY cell, value ORDER BY cell, value"
    )


def persons() -> str:
    """cell and persons of each cell."""
    each = "SELECT cell, person FROM contributions GROUP BY cell, person"
    return f"SELECT cell, COUNT(*) AS persons FROM ({each}) AS each_person GROUP BY cell ORDER BY cell"


def count(attribute: int | None) -> str:
    """of_group and persons of each group that anybody is in; None goes by cells whatever the values."""
    on = "c.cell = m.cell" if attribute is None else f"c.cell = m.cell AND c.v{attribute} = m.value"
    pairs = f"contributions AS c JOIN mapping AS m ON {on}"
    each = f"SELECT m.of_group, c.person FROM {pairs} GROUP BY m.of_group, c.person"
    return f"SELECT of_group, COUNT(*) AS persons FROM ({each}) AS each_person GROUP BY of_group"
