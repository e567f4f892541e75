"""Small random worlds: visits, attributes and a policy as plain data, for geodiv and for the oracle alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import h3
import numpy as np
from hypothesis import strategies as st
from oracles import MISSING, Declared, Labels, Visit, labels_of, text

if TYPE_CHECKING:
    import pandas as pd

    import geodiv.attribute
    import geodiv.policy
    import geodiv.publication

LADDER = ("recode", "merge", "suppress")
CENTRE = h3.latlng_to_cell(60.17, 24.94, 8)
H3_CELLS = (*sorted(h3.grid_disk(CENTRE, 2)), sorted(h3.grid_ring(CENTRE, 12))[0])
SQUARES = {f"r{row} c{column}": (column, row) for row in range(8, 12) for column in range(5)} | {
    "r1 c12": (12, 1)
}
"""Lattice cells by id: text order is not number order, there is white space, and the last one lies apart."""
METRIC = {
    f"CRS3067RES500mN{6_700_000 + 500 * row}E{98_500 + 500 * column}": (column, row)
    for column, row in SQUARES.values()
}
"""The same lattice as squares of a metric grid, located by coordinates; eastings pass from five digits to six."""
PLACES = {"zones": SQUARES, "zones by points": SQUARES, "square": METRIC}
KINDS = ("h3", "zones", "h3", "zones", "h3 by points", "zones by points", "square", "column", "names")
"""H3 cells and zones by id or by coordinates, squares by coordinates, H3 ids in a column grid, ids without a place."""
THRESHOLDS: dict[str, list[float]] = {
    "l_min": [2, 1.5, 1.8, 2.5, 3, 1],
    "t_max": [0.3, 0.2, 0.4, 0.5, 0.1, 0, 1],
    "shift_max": [0.3, 0.2, 0.4, 0.5, 0.1],
    "lift_max": [3, 2, 5, 1.5, 10, 1],
    "share_max": [0.6, 0.5, 0.7, 0.9, 0.4],
    "incidence_max": [0.8, 0.6, 0.7, 0.9, 0.4, 1],
    "label_min": [2, 1, 3],
}
Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Subject:
    """An attribute's declaration, what its column holds, and the edges of a numeric one."""

    declared: Declared
    raw: tuple[Any, ...]
    edges: tuple[float, ...] = ()

    def value(self, raw: Any) -> Any:
        """The declared value of a raw one: the band of a number."""
        if not self.edges or raw is None or text(raw) in self.declared.missing:
            return raw
        bands = list(self.declared.order)
        return next((b for b, e in zip(bands, self.edges[1:], strict=True) if raw < e), bands[-1])

    def labels(self, occurring: set[str]) -> Labels:
        return labels_of(self.declared, occurring)

    def attribute(self) -> geodiv.attribute.Attribute:
        """The declaration as geodiv takes it."""
        from geodiv.attribute import Nominal, Numeric, Ordinal
        from geodiv.taxonomy import Taxonomy

        d = self.declared
        taxonomy = Taxonomy(d.taxonomy) if d.taxonomy else None
        keywords: dict[str, Any] = {
            "taxonomy": taxonomy,
            "missing": d.missing,
            "sensitive": d.sensitive,
            "gates": d.gates,
            "level": d.level,
        }
        if self.edges:
            return Numeric(d.column, edges=self.edges, positions=d.positions, **keywords)
        if d.kind == "ordinal":
            return Ordinal(d.column, order=d.order, positions=d.positions, **keywords)
        keywords["distance"] = "hierarchical" if d.hierarchical else "total variation"
        return Nominal(d.column, unknown="own value", **keywords)


@dataclass(frozen=True)
class World:
    """One case: everything that decides a release, as plain data."""

    kind: str  # one of KINDS
    visits: tuple[tuple[str, Any, tuple[Any, ...]], ...]  # cell id, person, raw value of each attribute
    subjects: tuple[Subject, ...]
    gates: Mapping[str, Any]
    reference: Mapping[str, Any]
    remedies: Mapping[str, Any]
    count_min: int

    def visits_frame(self) -> pd.DataFrame:
        """Columns cell, person, lon and lat where the grid goes by them, and one per attribute."""
        import pandas as pd

        columns: dict[str, list[Any]] = {
            "cell": [v[0] for v in self.visits],
            "person": [v[1] for v in self.visits],
        }
        if self.kind in ("h3 by points", "zones by points", "square"):
            at = {cell: self.point(cell) for cell in {v[0] for v in self.visits}}
            columns["lon"] = [at[v[0]][0] for v in self.visits]
            columns["lat"] = [at[v[0]][1] for v in self.visits]
        for i, subject in enumerate(self.subjects):
            columns[subject.declared.column] = [v[2][i] for v in self.visits]
        return pd.DataFrame(columns)

    def attributes(self) -> list[geodiv.attribute.Attribute]:
        return [subject.attribute() for subject in self.subjects]

    def grid(self) -> Any:
        """The grid; cell ids, where it reads them, stand in the column `cell`."""
        from geodiv.grids.column import ColumnGrid
        from geodiv.grids.h3 import H3Grid
        from geodiv.grids.square import SquareGrid

        if self.kind == "square":
            return SquareGrid(500, crs="EPSG:3067")
        if self.kind in ("column", "names"):
            return ColumnGrid("cell")
        column = None if self.kind.endswith("by points") else "cell"
        return lattice_grid(column) if self.kind in PLACES else H3Grid(8, column=column)

    def point(self, cell: str) -> tuple[float, float]:
        """Longitude and latitude of a cell's centre."""
        if self.kind not in PLACES:
            lat, lon = h3.cell_to_latlng(cell)
            return lon, lat
        column, row = PLACES[self.kind][cell]
        east, north = (98_500, 6_700_000) if self.kind == "square" else (0, 0)
        return degrees(east + 500 * column + 250, north + 500 * row + 250)

    def policy(self) -> geodiv.policy.Policy:
        from geodiv.policy import Global, Policy, Region, Ring, Weights

        rule = dict(self.reference)
        scope = rule.pop("scope")
        if scope == "weights":
            from libpysal.graph import Graph

            pairs = [(a, b, float(w)) for a, near in rule.pop("weights").items() for b, w in near.items()]
            rule["graph"] = Graph.from_arrays(*map(np.array, zip(*pairs, strict=True)))
        kinds: dict[str, Any] = {"global": Global, "ring": Ring, "region": Region, "weights": Weights}
        return Policy(**self.gates, **self.remedies, reference=kinds[scope](**rule))

    def publication(self) -> geodiv.publication.Publication:
        from geodiv.publication import Publication

        return Publication(count_min=self.count_min)

    def near(self, order: int) -> dict[str, set[str]]:
        """Occupied cells within `order` steps of each occupied cell, itself excluded."""
        cells = {v[0] for v in self.visits}
        if self.kind == "names":
            return {a: set() for a in cells}
        if self.kind in PLACES:
            at = {c: PLACES[self.kind][c] for c in cells}
            apart = {
                (a, b): max(abs(at[a][0] - at[b][0]), abs(at[a][1] - at[b][1])) for a in cells for b in cells
            }
            return {a: {b for b in cells if 0 < apart[a, b] <= order} for a in cells}
        return {a: (set(h3.grid_disk(a, order)) & cells) - {a} for a in cells}

    def oracle_input(
        self,
    ) -> tuple[list[Visit], dict[int, dict[str, set[str]]], list[Declared], dict[str, Any]]:
        """The arguments of ``oracles.tabulate``."""
        columns = [subject.declared.column for subject in self.subjects]
        visits: list[Visit] = []
        for cell, person, raw in self.visits:
            values = [s.value(r) for s, r in zip(self.subjects, raw, strict=True)]
            visits.append((cell, person, dict(zip(columns, values, strict=True))))
        policy = {**self.gates, **self.remedies, "reference": self.reference, "count_min": self.count_min}
        return visits, {r: self.near(r) for r in (1, 2, 3)}, [s.declared for s in self.subjects], policy


@cache
def degrees(x: float, y: float) -> tuple[float, float]:
    """Longitude and latitude of a point in EPSG:3067."""
    from pyproj import Transformer

    return Transformer.from_crs("EPSG:3067", "EPSG:4326", always_xy=True).transform(x, y)  # type: ignore[no-any-return]


@cache
def lattice_grid(column: str | None) -> Any:
    """Squares of 500 m as zones, every square between the lattice cells included."""
    import geopandas as gpd
    import shapely

    from geodiv.grids.zones import ZoneGrid

    names = {place: name for name, place in SQUARES.items()}
    places = [(x, y) for y in range(13) for x in range(14)]
    boxes = [shapely.box(500 * x, 500 * y, 500 * x + 500, 500 * y + 500) for x, y in places]
    ids = [names.get(place, f"empty {place[0]} {place[1]}") for place in places]
    layer = gpd.GeoDataFrame({"zone": ids}, geometry=boxes, crs="EPSG:3067")
    return ZoneGrid(layer, id="zone", column=column)


# --- attributes ---------------------------------------------------------------------------------------------


@st.composite
def taxonomies(draw: st.DrawFn, values: tuple[str, ...], ordered: bool) -> Rows:
    """Rows of one or two levels over the values; a label may bear the name of its first value."""
    rows: list[tuple[str, ...]] = [(v,) for v in values]
    for level in range(1, draw(st.integers(1, 2)) + 1):
        below = list(dict.fromkeys(row[-1] for row in rows))
        group = draw(st.lists(st.integers(0, 2), min_size=len(below), max_size=len(below)))
        group = sorted(group) if ordered else group
        named = {
            g: below[group.index(g)] if draw(st.booleans()) else f"L{level}.{g}" for g in sorted(set(group))
        }
        above = {label: named[g] for label, g in zip(below, group, strict=True)}
        rows = [(*row, above[row[-1]]) for row in rows]
    return tuple(rows)


@st.composite
def own_gates(draw: st.DrawFn) -> dict[str, Any]:
    """A few gates that are not off."""
    chosen = draw(
        st.sets(st.sampled_from([*THRESHOLDS, "c"]), min_size=draw(st.sampled_from([2, 1, 3, 0])), max_size=4)
    )
    gates: dict[str, Any] = {
        name: draw(st.sampled_from(THRESHOLDS[name])) for name in THRESHOLDS if name in chosen
    }
    if "c" in chosen:
        gates |= {"c_l": draw(st.integers(1, 4)), "c_max": draw(st.sampled_from([2, 1, 3, 7.5, 0.5]))}
    return gates


@st.composite
def subjects(draw: st.DrawFn, column: str) -> Subject:
    """An attribute of any kind and what its column holds."""
    kind = draw(st.sampled_from(["nominal", "hierarchical", "ordinal", "numeric"]))
    size = draw(st.sampled_from([4, 3, 5, 2, 6, *([1] if kind != "hierarchical" else [])]))
    names: list[list[Any]] = [["work", "Work", "gym", "café", "bar", "1"], [10, 2, 1, 30, 4, 5]]
    raw = draw(st.sampled_from(names))[:size]
    edges: tuple[float, ...] = ()
    values = tuple(text(r) for r in raw)
    if kind == "numeric":
        edges = tuple(float(10 * i) for i in range(size + 1))
        raw = sorted({10 * i + 3 for i in range(size)} | {10 * size, 0})
        ends = [text(e) for e in edges]
        values = tuple(f"[{ends[i]}, {ends[i + 1]}{')' if i < size - 1 else ']'}" for i in range(size))
    ordered = kind in ("ordinal", "numeric")
    with_taxonomy = kind == "hierarchical" or draw(st.booleans())
    positions = None
    if ordered and draw(st.booleans()):
        gaps = draw(st.lists(st.integers(1, 5), min_size=size, max_size=size))
        positions = tuple(float(x) for x in np.cumsum(gaps))
    markers = draw(st.sampled_from([(), ("-999",), ("", "-999")]))
    declared = Declared(
        column,
        "ordinal" if ordered else "nominal",
        order=values if ordered else (),
        positions=positions,
        taxonomy=draw(taxonomies(values, ordered)) if with_taxonomy else (),
        hierarchical=kind == "hierarchical",
        missing=markers,
        sensitive=draw(
            st.none() | st.sets(st.sampled_from([*values, MISSING]), min_size=1).map(sorted).map(tuple)
        ),
        gates=draw(
            st.sampled_from([False, False, True]).flatmap(lambda own: own_gates() if own else st.just({}))
        ),
    )
    if declared.sensitive is not None and draw(st.sampled_from([False, True, False])):
        gate = draw(st.sampled_from(["tier_max", "tier_incidence_max"]))
        gates = {**declared.gates, gate: draw(st.sampled_from([0.7, 0.5, 0.9, 0.3]))}
        declared = replace(declared, gates=gates)
    labels = labels_of(declared, values)
    levels = [level for level in range(len(labels.levels)) if labels.publishable(level)]
    declared = replace(declared, level=draw(st.sampled_from([0, 0, 0, *levels])))
    plain = text if isinstance(raw[0], str) else int
    if not ordered and draw(st.booleans()):
        raw = [*raw, plain(77)]
    if draw(st.booleans()):
        raw = [*raw, None, *([plain(-999)] if markers else [])]
    return Subject(declared, tuple(raw), edges)


# --- visits, reference, policy ------------------------------------------------------------------------------


def visited(
    seed: int, cells: list[str], persons: int, visits: int, kinds: tuple[Subject, ...], even: float
) -> tuple[tuple[str, Any, tuple[Any, ...]], ...]:
    """Visits in which cells have their favourite values and persons come back to the same cells."""
    rng = np.random.default_rng(seed)
    cell = rng.choice(len(cells), size=visits, p=rng.dirichlet(np.full(len(cells), 2.0)))
    person = rng.integers(persons, size=visits)
    columns = []
    for subject in kinds:
        taste = rng.dirichlet(np.full(len(subject.raw), even), size=len(cells)).cumsum(axis=1)
        code = (rng.random(visits)[:, None] > taste[cell]).sum(axis=1).clip(max=len(subject.raw) - 1)
        columns.append([subject.raw[i] for i in code])
    who = [f"p{i}" for i in person]
    rows = list(zip([cells[i] for i in cell], who, zip(*columns, strict=True), strict=True))
    return tuple(rows + [rows[i] for i in rng.integers(visits, size=visits // 10)])


@st.composite
def references(draw: st.DrawFn, cells: list[str]) -> dict[str, Any]:
    """What zones are judged against, as the oracle takes it."""
    scope = draw(st.sampled_from(["ring", "ring", "global", "region", "weights"]))
    if scope == "global":
        return {"scope": scope}
    rule: dict[str, Any] = {
        "scope": scope,
        "min_persons": draw(st.sampled_from([1, 5, 15, 40])),
        "fallback": draw(st.sampled_from(["global", "global", "none"])),
    }
    if scope == "ring":
        rule["order"] = draw(st.integers(1, 2))
        rule["max_order"] = draw(st.integers(rule["order"], 3))
    elif scope == "region":
        named = draw(
            st.lists(st.sampled_from(["north", "south", None]), min_size=len(cells), max_size=len(cells))
        )
        rule["regions"] = {cell: name for cell, name in zip(cells, named, strict=True) if name}
    else:
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        weight = rng.choice([0, 0, 0.5, 1, 2.5], size=(len(cells), len(cells)))
        weight[:, 0] = 1
        rule["weights"] = {
            a: {b: float(weight[i, j]) for j, b in enumerate(cells) if weight[i, j] > 0}
            for i, a in enumerate(cells)
        }
    return rule


@st.composite
def remedies(draw: st.DrawFn) -> dict[str, Any]:
    """Ladder, scope of the recoding and caps."""
    subsets = [tuple(r for i, r in enumerate(LADDER) if bits >> i & 1) for bits in range(8)]
    ladder = draw(st.sampled_from([LADDER] * 8 + subsets))
    return {
        "ladder": ladder,
        "recode_scope": draw(st.sampled_from(["zone", "zone", "release"])),
        "max_members": draw(st.sampled_from([4, 2, 3, 5, 1])),
        "max_rounds": draw(st.sampled_from([20] * 7 + [1, 2])),
        "residual": draw(st.booleans()),
    }


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A world of 3 to 14 cells, 5 to 40 persons and one or two attributes."""
    kind = draw(st.sampled_from(KINDS))
    everywhere = list(PLACES.get(kind, H3_CELLS))
    if kind == "names":
        everywhere = [f"c-{i:02}" for i in range(len(H3_CELLS))]
    seed = draw(st.integers(0, 9999))
    cells = [everywhere[i] for i in np.random.default_rng(seed).permutation(len(everywhere))]
    cells = cells[: draw(st.integers(3, 14))]
    kinds = tuple(draw(subjects(column)) for column in ["activity", "band"][: draw(st.integers(1, 2))])
    persons, visits = draw(st.integers(5, 40)), draw(st.sampled_from([100, 200, 10, 30, 60, 150, 250]))
    even = draw(st.sampled_from([1.0, 0.3, 3.0, 20.0]))
    rows = visited(seed, cells, persons, visits, kinds, even)
    gates = {"k_min": draw(st.sampled_from([4, 2, 3, 5, 6, 1])), **draw(own_gates())}
    for i, subject in enumerate(kinds):
        occurring = {text(subject.value(row[2][i])) for row in rows} - {*subject.declared.missing, MISSING}
        most = max(len(subject.labels(occurring).levels[0]), 1)
        own = subject.declared.gates
        if "l_min" in own:
            capped = replace(subject.declared, gates={**own, "l_min": min(own["l_min"], most)})
            kinds = (*kinds[:i], replace(subject, declared=capped), *kinds[i + 1 :])
        elif "l_min" in gates:
            gates["l_min"] = min(gates["l_min"], most)
    return World(kind, rows, kinds, gates, draw(references(cells)), draw(remedies()), draw(st.integers(1, 4)))
