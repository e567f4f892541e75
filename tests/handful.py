"""A handful of random visits for the tests of engines, and who is behind them by plain loops."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from oracles import MISSING

from geodiv.engines.protocol import Contributions, Groups

Row = tuple[str, str, str | None]
"""Cell, person, activity."""
some_rows = st.lists(
    st.tuples(st.sampled_from(["c", "d", "e"]), st.sampled_from("pqrst"), st.sampled_from(["a", "b", None])),
    min_size=1, max_size=40,
)  # fmt: skip


def frame(rows: list[Row]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["cell", "person", "activity"]).astype(object)


def held(rows: list[Row]) -> dict[tuple[str, str], list[str]]:
    """Persons of the visits of each (cell, value), repeats kept."""
    found: dict[tuple[str, str], list[str]] = {}
    for cell, person, value in rows:
        found.setdefault((cell, value or MISSING), []).append(person)
    return found


def drawn_groups(
    data: st.DataObject, rows: list[Row], found: Contributions
) -> tuple[tuple[Groups, list[int]], tuple[Groups, list[int]]]:
    """Five groups of random (cell, value) pairs, and of their cells whatever the values; each with its persons.

    A pair may feed several groups, several times; a group may have none.
    """
    pairs, values, expected = found.pairs[0], found.spaces[0].values, held(rows)
    chosen = data.draw(
        st.lists(st.tuples(st.integers(0, len(pairs.cell) - 1), st.integers(0, 4)), max_size=15).map(np.array)
    )
    at, group = chosen.reshape(-1, 2).astype(np.int64).T
    sets: list[set[str]] = [set() for _ in range(5)]
    people: list[set[str]] = [set() for _ in range(5)]
    for i, g in zip(at, group, strict=True):
        cell = found.keys[pairs.cell[i]]
        sets[g] |= set(expected[cell, values[pairs.value[i]]])
        people[g] |= {person for c, person, _ in rows if c == cell}
    of_pairs = Groups(0, pairs.cell[at], pairs.value[at], group, 5)
    of_cells = Groups(None, pairs.cell[at], None, group, 5)
    return (of_pairs, [len(s) for s in sets]), (of_cells, [len(s) for s in people])
