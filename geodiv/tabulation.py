"""Tabulation: distinct persons per cell and label, and the same again for any other partition of the cells."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .arrays import CSR, IntArray
from .attribute import Attribute
from .engines.choice import engine_of
from .engines.memory import runs
from .engines.protocol import Contributions, Engine, Groups, Progress
from .errors import PolicyError
from .grids.protocol import Grid, expect_grid
from .intake import Intake, VisitSpec, declared
from .labels import LabelSpace
from .plan import Plan
from .sketch import sketch

Counted = tuple[tuple[CSR, ...], ...]
"""Over attributes, over levels: (zones, labels) sparse int64, distinct persons."""


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Distinct persons in each zone of a partition, at every level.

    Parameters
    ----------
    members : (zones, cells) sparse of 0 and 1
    persons : (zones,) int64
        Distinct persons N(z); never the sum of the label counts.
    labels : tuple over attributes of tuple over levels of (zones, labels) sparse int64
    tier : (zones, attributes) int64
        Distinct persons with any value of the sensitive tier (of ``LabelSpace.certain``), where an attribute names
        it; 0 where it names none. Never published, and no label of any level.
    """

    members: CSR
    persons: IntArray
    labels: Counted
    tier: IntArray

    @property
    def sizes(self) -> IntArray:
        """(zones,) number of member cells."""
        return np.diff(self.members.indptr)

    def take(self, rows: IntArray) -> Counts:
        """The counts of some of the zones, in the order given."""
        labels = tuple(tuple(level[rows] for level in levels) for levels in self.labels)
        return Counts(self.members[rows], self.persons[rows], labels, self.tier[rows])

    def __add__(self, other: Counts) -> Counts:
        labels = tuple(
            tuple(sparse.vstack([a, b], format="csr") for a, b in zip(mine, theirs, strict=True))
            for mine, theirs in zip(self.labels, other.labels, strict=True)
        )
        return Counts(
            sparse.vstack([self.members, other.members], format="csr"),
            np.concatenate([self.persons, other.persons]),
            labels,
            np.concatenate([self.tier, other.tier]),
        )


class Outlines:
    """Outlines of the cells of a table: made when they are first asked for, and kept."""

    def __init__(self, grid: Grid, keys: NDArray[Any]) -> None:
        self._grid = grid
        self._keys = keys
        self._made: list[Any] = []

    def get(self) -> Any:
        """Shapely polygons, (cells,) object, not to be written to; None when the grid has none."""
        if not self._made:
            outlines = self._grid.geometry(self._keys)
            if outlines is not None:
                outlines = np.asarray(outlines, dtype=object).view()
                outlines.flags.writeable = False
            self._made.append(outlines)
        return self._made[0]


@dataclass(frozen=True, slots=True, eq=False)
class Tabulation:
    """Integer counts of people per occupied cell, and what it takes to count them again under a plan.

    Parameters
    ----------
    grid : Grid
    attributes : tuple of Attribute
    spaces : tuple over attributes of LabelSpace
    cells : (cells,) object
        Ids of the occupied cells, sorted as text.
    base : Counts
        The counts with each cell a zone of its own.
    visits : tuple over attributes of (cells, values) sparse int64
        Input rows beside the persons.
    intake : Intake
        Rows read, counted and not counted, by reason.
    engine : Engine
    contributions : Contributions
        The engine's handle; personal data.
    adjacency : (cells, cells) sparse of 0 and 1
        Cells one step apart; merging follows it.
    """

    grid: Grid
    attributes: tuple[Attribute, ...]
    spaces: tuple[LabelSpace, ...]
    cells: NDArray[Any]
    base: Counts
    visits: tuple[CSR, ...]
    intake: Intake
    engine: Engine
    contributions: Contributions = field(repr=False)
    adjacency: CSR = field(repr=False)
    _outlines: Outlines = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_outlines", Outlines(self.grid, self.contributions.keys))

    @property
    def keys(self) -> NDArray[Any]:
        """(cells,) grid keys in the order of `cells`."""
        return self.contributions.keys

    @property
    def persons(self) -> IntArray:
        """(cells,) distinct persons of each cell."""
        return self.base.persons

    def __repr__(self) -> str:
        names = ", ".join(a.column for a in self.attributes)
        return f"<Tabulation of {len(self.cells)} {self.grid.kind} cells, {names}>"

    def _repr_html_(self) -> str:
        """Internal: what was counted, and the outlines of the occupied cells."""
        counted = f"{self.intake.counted:,} of {self.intake.rows:,}"
        rows = [("occupied cells", f"{len(self.cells):,} ({self.grid.kind})"), ("visits counted", counted)]
        rows += [
            (f"not counted: {reason}", f"{n:,}") for reason, n in sorted(self.intake.dropped.items()) if n
        ]
        for attribute, space in zip(self.attributes, self.spaces, strict=True):
            values = f"{len(space.values):,} values, {len(space.levels)} level(s)"
            rows.append((attribute.column, f"{type(attribute).__name__.lower()}, {values}"))
        lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(said)}</td></tr>" for name, said in rows)
        head = "<thead><tr><th>tabulation</th><td>internal</td></tr></thead>"
        outlines, picture = self.geometry(), ""
        if outlines is not None:
            degrees = self.grid.kind in ("h3", "column")
            colours, label = ("#8C96C6",), "Map of the occupied cells"
            picture = sketch(outlines, np.zeros(len(outlines)), colours, label=label, degrees=degrees)
        return f'<div class="geodiv"><table>{head}<tbody>{lines}</tbody></table>{picture}</div>'

    def start(self, levels: Sequence[int] | None = None) -> Plan:
        """The plan before remedies: each cell a zone, attributes at these levels (their own starting ones)."""
        return Plan.of_cells(len(self.cells), levels or [a.level for a in self.attributes])

    def count(self, members: CSR) -> Counts:
        """Distinct persons in each set of cells, counted again from the contributions, at every level.

        Parameters
        ----------
        members : (zones, cells) sparse
            The cells of each zone; zones may overlap.
        """
        members = CSR(members)
        sizes = np.diff(members.indptr)
        lone, many = np.flatnonzero(sizes == 1), np.flatnonzero(sizes != 1)
        alone = self.base.take(members[lone].indices)
        if not len(many):
            return Counts(members, alone.persons, alone.labels, alone.tier)
        counted = alone + self._recount(members[many])
        back = np.argsort(np.concatenate([lone, many]), kind="stable")
        return counted.take(back)

    def recount(self, plan: Plan, known: Counts | None = None) -> Counts:
        """Distinct persons in each zone of a plan.

        Only zones whose cells are not a zone of `known` (the counts under an earlier plan) are counted again.
        """
        if known is None:
            return self.count(plan.members())
        return self.recount_from(plan, known)[0]

    def recount_from(self, plan: Plan, known: Counts) -> tuple[Counts, IntArray]:
        """As `recount`, and for each zone its row in `known`, -1 for those that were counted again."""
        members = plan.members()
        place = _same_rows(members, known.members)
        new = np.flatnonzero(place < 0)
        at = place.copy()
        at[new] = known.members.shape[0] + np.arange(len(new))
        return (known + self.count(members[new])).take(at), place

    def relabelled(self, spaces: Sequence[LabelSpace]) -> Tabulation:
        """The same visits under other labels over the same values, one label space an attribute; counted again."""
        contributions = replace(self.contributions, spaces=tuple(spaces))
        base = _cells_counted(self.engine, contributions, self.attributes)
        return replace(self, spaces=tuple(spaces), base=base, contributions=contributions)

    def geometry(self) -> Any:
        """Shapely polygons of the cells, (cells,) object, or None when the grid has none."""
        return self._outlines.get()

    def _recount(self, members: CSR) -> Counts:
        row = np.repeat(np.arange(members.shape[0]), np.diff(members.indptr))
        cell = members.indices.astype(np.int64)
        persons = self.engine.count(self.contributions, Groups(None, cell, None, row, members.shape[0]))
        labels, tier = [], np.zeros((members.shape[0], len(self.spaces)), dtype=np.int64)
        for a, space in enumerate(self.spaces):
            base = self.base.labels[a][0]
            length = np.diff(base.indptr)[cell]
            at = runs(base.indptr[cell].astype(np.int64), length)
            pair = (
                np.repeat(row, length),
                np.repeat(cell, length),
                base.indices[at].astype(np.int64),
                base.data[at],
            )
            labels.append(
                tuple(
                    _count_labels(self.engine, self.contributions, a, pair, members.shape[0], up, len(names))
                    for up, names in zip(space.up, space.levels, strict=True)
                )
            )
            if self.attributes[a].sensitive is not None:
                tier[:, a] = _count_tier(self.engine, self.contributions, a, pair, members.shape[0])
        return Counts(members, persons, tuple(labels), tier)


def tabulate(
    source: Any,
    *,
    grid: Grid,
    person: str,
    attributes: Sequence[Attribute],
    lon: str | None = None,
    lat: str | None = None,
    crs: str | None = None,
    on_bad_rows: Literal["error", "skip"] = "error",
    engine: str | Engine = "memory",
    layer: str | None = None,
    points: Literal["only", "representative"] = "only",
    rejects: str | Path | None = None,
    progress: Progress | None = None,
) -> Tabulation:
    """Counts of distinct persons per occupied cell and label of each attribute.

    Parameters
    ----------
    source : GeoDataFrame, DataFrame, Arrow table, path, glob
        Visits, one a row. Never written to.
    grid : H3Grid, SquareGrid, ZoneGrid or ColumnGrid
    person : str
        Column that tells persons apart; compared as text.
    attributes : sequence of Nominal, Ordinal or Numeric
        The sensitive attributes, at least one.
    lon, lat : str, optional
        Columns with coordinates; found by the usual names unless there is a geometry.
    crs : str, optional
        CRS of the coordinates when the source does not say it.
    on_bad_rows : {"error", "skip"}
        What to do with rows that cannot be counted; they are always tallied by reason in ``table.intake``.
    engine : "memory" or Engine
    layer : str, optional
        Layer of a file that has several.
    points : {"only", "representative"}
        Whether geometries other than points are an error, or stand for a point inside them.
    rejects : path, optional
        A CSV to write the number and reason of each row that is not counted to.
    progress : callable, optional
        Called with (stage, done, total).

    Raises
    ------
    SourceError, GridError, UnknownValueError, PolicyError
        What was expected, what came, and where.

    Examples
    --------
    >>> import geodiv as gd
    >>> activity = gd.Nominal("poi_category", missing=["", "Unknown"])
    >>> visits = "fixtures/visits.parquet"
    >>> gd.tabulate(visits, grid=gd.H3Grid(8), person="person_id", attributes=[activity], on_bad_rows="skip")
    <Tabulation of 92 h3 cells, poi_category>
    """
    expect_grid(grid)
    attributes = declared(attributes)
    if not attributes:
        raise PolicyError("attributes: expected at least one sensitive attribute, got none.")
    columns = [a.column for a in attributes]
    if len({c.lower() for c in columns}) < len(columns):
        raise PolicyError(f"attributes: expected different columns (without regard to case), got {columns}.")
    spec = VisitSpec(
        person=person,
        grid=grid,
        attributes=attributes,
        lon=lon,
        lat=lat,
        crs=crs,
        on_bad_rows=on_bad_rows,
        layer=layer,
        points=points,
        rejects=Path(rejects) if rejects is not None else None,
    )
    chosen = engine_of(engine)
    with ExitStack() as after_an_error:
        if chosen is not engine:
            after_an_error.callback(chosen.close)
        table = of_contributions(chosen.reduce(source, spec, progress), grid, attributes, chosen)
        after_an_error.pop_all()
    return table


def of_contributions(
    contributions: Contributions, grid: Grid, attributes: tuple[Attribute, ...], engine: Engine
) -> Tabulation:
    """The Tabulation of an engine's contributions."""
    cells = len(contributions.keys)
    visits = [
        CSR((pairs.visits, (pairs.cell, pairs.value)), shape=(cells, len(space.values)))
        for pairs, space in zip(contributions.pairs, contributions.spaces, strict=True)
    ]
    return Tabulation(
        grid=grid,
        attributes=attributes,
        spaces=contributions.spaces,
        cells=grid.ids(contributions.keys),
        base=_cells_counted(engine, contributions, attributes),
        visits=tuple(visits),
        intake=contributions.intake,
        engine=engine,
        contributions=contributions,
        adjacency=grid.neighbours(contributions.keys, 1),
    )


def _cells_counted(engine: Engine, contributions: Contributions, attributes: tuple[Attribute, ...]) -> Counts:
    """The counts with each cell a zone of its own."""
    cells = len(contributions.keys)
    labels = []
    tier = np.zeros((cells, len(attributes)), dtype=np.int64)
    for a, (pairs, space) in enumerate(zip(contributions.pairs, contributions.spaces, strict=True)):
        pair = (pairs.cell, pairs.cell, pairs.value, pairs.persons)
        labels.append(
            tuple(
                _count_labels(engine, contributions, a, pair, cells, up, len(names))
                for up, names in zip(space.up, space.levels, strict=True)
            )
        )
        if attributes[a].sensitive is not None:
            tier[:, a] = _count_tier(engine, contributions, a, pair, cells)
    identity = CSR(sparse.identity(cells, format="csr"))
    return Counts(identity, contributions.persons, tuple(labels), tier)


def _count_labels(
    engine: Engine,
    contributions: Contributions,
    attribute: int,
    pair: tuple[IntArray, IntArray, IntArray, IntArray],
    zones: int,
    up: IntArray,
    labels: int,
) -> CSR:
    """(zones, labels) distinct persons; `pair` holds zone, cell, value and the pair's own persons.

    A label fed by exactly one (cell, value) pair keeps that pair's count; only the others are counted again.
    """
    zone, cell, value, persons = pair
    code, group, fed = _grouped(zone * labels + up[value], zones * labels)
    result = np.zeros(len(code), dtype=np.int64)
    single = fed[group] == 1
    result[group[single]] = persons[single]
    rest = ~single
    if rest.any():
        again, inner, _ = _grouped(group[rest], len(code))
        groups = Groups(attribute, cell[rest], value[rest], inner, len(again))
        result[again] = engine.count(contributions, groups)
    return CSR((result, (code // labels, code % labels)), shape=(zones, labels))


def _grouped(codes: IntArray, size: int) -> tuple[IntArray, IntArray, IntArray]:
    """As `numpy.unique`: the codes (0 to size - 1) that occur, which of them each is, and how often.

    They are counted instead of sorted where there are not many more codes than places for them.
    """
    if size > 8 * len(codes):
        found, group, times = np.unique(codes, return_inverse=True, return_counts=True)
        return found, group.astype(np.int64, copy=False), times
    every = np.bincount(codes, minlength=size)
    found = np.flatnonzero(every)
    group = np.empty(size, dtype=np.int64)
    group[found] = np.arange(len(found))
    return found, group[codes], every[found]


def _count_tier(
    engine: Engine,
    contributions: Contributions,
    attribute: int,
    pair: tuple[IntArray, IntArray, IntArray, IntArray],
    zones: int,
) -> IntArray:
    """(zones,) distinct persons with any value of the tier: the tier counted as one label, beside the levels."""
    certain = contributions.spaces[attribute].certain[0]
    zone, cell, value, persons = (column[certain[pair[2]]] for column in pair)
    one = np.zeros(len(certain), dtype=np.int64)
    some = _count_labels(engine, contributions, attribute, (zone, cell, value, persons), zones, one, 1)
    return np.asarray(some.todense(), dtype=np.int64).ravel()


def _same_rows(members: CSR, known: CSR) -> IntArray:
    """(zones,) row of `known` with the same cells, or -1. The rows of each are disjoint."""
    row = np.full(known.shape[1], -1, dtype=np.int64)
    row[known.indices] = np.repeat(np.arange(known.shape[0]), np.diff(known.indptr))
    at = row[members.indices]
    first = at[members.indptr[:-1]]
    sizes = np.diff(members.indptr)
    agree = (
        np.add.reduceat(at == np.repeat(first, sizes), members.indptr[:-1]) == sizes if len(sizes) else first
    )
    same = agree & (first >= 0)
    same[same] &= np.diff(known.indptr)[first[same]] == sizes[same]
    return np.where(same, first, -1)
