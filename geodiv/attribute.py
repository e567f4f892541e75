"""Sensitive attributes: their values, their order, and what is missing. Order is declared, never guessed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from .errors import PolicyError, TaxonomyError, UnknownValueError, did_you_mean, listed
from .ground import Tree, hierarchy, path, star
from .labels import LabelSpace, label_space
from .taxonomy import Taxonomy
from .text import MISSING, as_text

Unknown = Literal["error", "own value"]
Distance = Literal["total variation", "hierarchical"]
RESERVED = frozenset(
    [
        "fid",
        "geom",
        "geometry",
        "cell_id",
        "members",
        "n_members",
        "persons",
        "area_m2",
        "remedy",
        "final_remedy",
        "zone_id",
    ]
)
"""Column names of the files that geodiv writes, compared without case: GeoPackage cannot hold two of them."""


@runtime_checkable
class Attribute(Protocol):
    """What the rest of geodiv asks of an attribute, whatever its kind."""

    @property
    def column(self) -> str: ...
    @property
    def taxonomy(self) -> Taxonomy | None: ...
    @property
    def missing(self) -> tuple[str, ...]: ...
    @property
    def sensitive(self) -> tuple[str, ...] | None: ...
    @property
    def gates(self) -> Mapping[str, float]: ...
    @property
    def level(self) -> int: ...

    def recognise(self, texts: Sequence[str]) -> list[str]:
        """The declared value of each distinct text of the column; missing markers become ``(missing)``."""

    def space(self, occurring: Iterable[str]) -> LabelSpace:
        """The labels of every level and the ground distance, given the values (of `recognise`) that occur."""


@dataclass(frozen=True, slots=True)
class Nominal:
    """An attribute without order.

    Parameters
    ----------
    column : str
    taxonomy : Taxonomy, optional
        Without one, the values that occur are the declaration, and recoding is skipped.
    missing : sequence, optional
        Markers that mean missing, beside None, NaN and NA.
    sensitive : sequence of str, optional
        Values of the sensitive tier; all of them unless named, and ``(missing)`` always.
    gates : mapping of str to float, optional
        Gates of this attribute alone, over those of the policy; any but ``k_min``.
    level : int, default 0
        The finest level that is published.
    unknown : {"error", "own value"}
        A value outside the taxonomy is an error, or keeps itself at every level.
    distance : {"total variation", "hierarchical"}
        Hierarchical needs a taxonomy: two values are height(lowest common ancestor) / height apart.

    Examples
    --------
    >>> from geodiv import Taxonomy
    >>> poi = Taxonomy.of({"clinic": "appointment", "salon": "appointment", "bar": "evening"}, name="poi")
    >>> activity = Nominal("poi_category", taxonomy=poi, missing=["", -999], sensitive=["clinic"])
    >>> activity.missing
    ('', '-999')
    """

    column: str
    taxonomy: Taxonomy | None = None
    missing: tuple[str, ...] = ()
    sensitive: tuple[str, ...] | None = None
    gates: Mapping[str, float] = field(default_factory=dict)
    level: int = 0
    unknown: Unknown = "error"
    distance: Distance = "total variation"

    def __post_init__(self) -> None:
        _normalise(self)
        if self.distance not in ("total variation", "hierarchical"):
            raise PolicyError(
                f"distance of '{self.column}': expected 'total variation' or 'hierarchical', "
                f"got {self.distance!r}."
            )
        if self.distance == "hierarchical" and self.taxonomy is None:
            raise PolicyError(f"'{self.column}': distance = 'hierarchical' needs a taxonomy.")
        if self.taxonomy is not None:
            _check_declared(self, self.taxonomy.values)

    def recognise(self, texts: Sequence[str]) -> list[str]:
        """The declared value of each distinct text; see `Attribute`."""
        values = _without_markers(self, texts)
        if self.taxonomy is not None and self.unknown == "error":
            where = f"taxonomy '{self.taxonomy.name}' {self.taxonomy.version}"
            _check_known(self, values, self.taxonomy.values, where)
        return values

    def space(self, occurring: Iterable[str]) -> LabelSpace:
        """Labels and ground distance; see `Attribute`."""
        occurring = set(occurring)
        declared = set(self.taxonomy.values) if self.taxonomy else set()
        values = sorted((declared | occurring) - {MISSING})
        if self.taxonomy is None and self.unknown == "error" and values:
            _check_declared(self, values)
        return _space(self, values, MISSING in occurring, self._tree)

    def _tree(self, space: LabelSpace, missing: bool) -> Tree:
        if self.distance == "total variation":
            return star(len(space.values))
        known = len(space.values) - missing
        single = len(space.levels[-1]) - missing == 1
        return hierarchy([codes[:known] for codes in space.up], single, missing)


@dataclass(frozen=True, slots=True)
class Ordinal:
    """An attribute whose values have a stated order, such as income bands.

    Parameters
    ----------
    column : str
    order : sequence
        The values, lowest first.
    positions : sequence of float, optional
        Where the values lie (band midpoints), ascending; equal gaps otherwise. Any unit.
    taxonomy, missing, sensitive, gates, level
        As for `Nominal`; the labels of a taxonomy hold neighbouring values only.

    Examples
    --------
    >>> Ordinal("price", order=[1, 2, 3, 4], missing=[-999]).order
    ('1', '2', '3', '4')
    """

    column: str
    order: tuple[str, ...] = ()
    positions: tuple[float, ...] | None = None
    taxonomy: Taxonomy | None = None
    missing: tuple[str, ...] = ()
    sensitive: tuple[str, ...] | None = None
    gates: Mapping[str, float] = field(default_factory=dict)
    level: int = 0

    def __post_init__(self) -> None:
        _normalise(self)
        object.__setattr__(self, "order", _texts(self.column, "order", self.order))
        _check_order(self.column, self.order, self.positions)
        if self.positions is not None:
            object.__setattr__(self, "positions", tuple(float(x) for x in self.positions))
        _check_declared(self, self.order)
        _check_ordered_taxonomy(self, self.order)

    def recognise(self, texts: Sequence[str]) -> list[str]:
        """The declared value of each distinct text; see `Attribute`."""
        values = _without_markers(self, texts)
        _check_known(self, values, self.order, "its order", "Add them to order, or to missing")
        return values

    def space(self, occurring: Iterable[str]) -> LabelSpace:
        """Labels and ground distance; see `Attribute`."""
        positions = self.positions or range(len(self.order))
        return _space(
            self, self.order, MISSING in set(occurring), lambda _, missing: path(positions, missing)
        )


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number, cut into bands at declared edges.

    Parameters
    ----------
    column : str
    edges : sequence of float
        Ascending; bands are ``[e_i, e_i+1)`` and the last one is closed. Open ends are -inf and inf. In the
        unit of the column. A number outside is an error.
    positions : sequence of float, optional
        One a band; equal gaps otherwise.
    missing : sequence, optional
        As for `Nominal`; a marker that is a number is that number however it is written, -999 also -999.0.
    taxonomy, sensitive, gates, level
        As for `Ordinal`, over the bands' labels such as ``[10, 20)``.

    Examples
    --------
    >>> Numeric("income", edges=[0, 10, 20, float("inf")]).bands
    ('[0, 10)', '[10, 20)', '[20, inf]')
    """

    column: str
    edges: tuple[float, ...] = ()
    positions: tuple[float, ...] | None = None
    taxonomy: Taxonomy | None = None
    missing: tuple[str, ...] = ()
    sensitive: tuple[str, ...] | None = None
    gates: Mapping[str, float] = field(default_factory=dict)
    level: int = 0

    def __post_init__(self) -> None:
        _normalise(self)
        object.__setattr__(self, "edges", _numbers(self.column, "edges", self.edges))
        if len(self.edges) < 2 or any(not a < b for a, b in pairwise(self.edges)):
            raise PolicyError(
                f"edges of '{self.column}': expected at least two ascending numbers, got {list(self.edges)}."
            )
        _check_order(self.column, self.bands, self.positions)
        if self.positions is not None:
            object.__setattr__(self, "positions", tuple(float(x) for x in self.positions))
        _check_declared(self, self.bands)
        _check_ordered_taxonomy(self, self.bands)

    @property
    def bands(self) -> tuple[str, ...]:
        """The bands' labels, lowest first."""
        ends = [as_text(edge) for edge in self.edges]
        last = len(ends) - 2
        return tuple(f"[{a}, {b}{']' if i == last else ')'}" for i, (a, b) in enumerate(pairwise(ends)))

    def recognise(self, texts: Sequence[str]) -> list[str]:
        """The band of each distinct text; see `Attribute`."""
        values = _without_markers(self, texts)
        numbers = np.array([_number(value) for value in values], dtype=float)
        markers = [_number(marker) for marker in self.missing]
        for i in np.flatnonzero(np.isin(numbers, markers)).tolist():
            values[i] = MISSING
        known = [i for i, value in enumerate(values) if value != MISSING]
        numbers = numbers[known]
        edges = np.asarray(self.edges)
        outside = np.isnan(numbers) | (numbers < edges[0]) | (numbers > edges[-1])
        if outside.any():
            wrong = [values[known[i]] for i in np.flatnonzero(outside)]
            if np.isnan(numbers).any():
                texts = [values[known[i]] for i in np.flatnonzero(np.isnan(numbers))]
                raise UnknownValueError(
                    f"values of '{self.column}' are no numbers: {listed(texts, 5)}. Write decimals with a point, "
                    "declare what means missing in missing, or name another kind: nominal, or ordinal with an order."
                )
            raise UnknownValueError(
                f"values of '{self.column}' are outside its edges [{edges[0]}, {edges[-1]}]: "
                f"{listed(wrong, 5)}. Widen the edges (open ends: -inf, inf), or declare them in missing."
            )
        band = np.minimum(np.searchsorted(edges, numbers, side="right") - 1, len(edges) - 2)
        bands = self.bands
        for i, b in zip(known, band, strict=True):
            values[i] = bands[b]
        return values

    def space(self, occurring: Iterable[str]) -> LabelSpace:
        """Labels and ground distance; see `Attribute`."""
        bands = self.bands
        positions = self.positions or range(len(bands))
        return _space(self, bands, MISSING in set(occurring), lambda _, missing: path(positions, missing))


def _space(attribute: Any, values: Sequence[str], missing: bool, tree: Any) -> LabelSpace:
    space = label_space(attribute.taxonomy, values, missing, attribute.sensitive)
    if attribute.level >= len(space.levels):
        raise PolicyError(
            f"level of '{attribute.column}': expected 0 to {len(space.levels) - 1} (its taxonomy's levels), "
            f"got {attribute.level}."
        )
    if not space.publishable[attribute.level]:
        raise PolicyError(
            f"level {attribute.level} of '{attribute.column}' has a single label: it would say nothing and "
            "pass everything. Start at a finer level."
        )
    return space.with_tree(tree(space, missing))


def _normalise(attribute: Any) -> None:
    column = attribute.column
    if not isinstance(column, str) or not column:
        raise PolicyError(f"an attribute's column: expected a name, got {column!r}.")
    if column.lower() in RESERVED:
        raise PolicyError(
            f"attribute '{column}': this name is a column of the files that geodiv writes. "
            "Rename the column first."
        )
    object.__setattr__(attribute, "missing", _texts(column, "missing", attribute.missing))
    if attribute.sensitive is not None:
        object.__setattr__(attribute, "sensitive", _texts(column, "sensitive", attribute.sensitive))
    if not isinstance(attribute.gates, Mapping):
        raise PolicyError(
            f"gates of '{column}': expected a table such as {{l_min = 2}}, got {attribute.gates!r}."
        )
    object.__setattr__(attribute, "gates", dict(attribute.gates))
    if not isinstance(attribute.level, int) or isinstance(attribute.level, bool) or attribute.level < 0:
        raise PolicyError(f"level of '{column}': expected 0, 1, ..., got {attribute.level!r}.")
    if getattr(attribute, "unknown", "error") not in ("error", "own value"):
        raise PolicyError(
            f"unknown of '{column}': expected 'error' or 'own value', got {attribute.unknown!r}."
        )
    if attribute.taxonomy is not None and not isinstance(attribute.taxonomy, Taxonomy):
        raise PolicyError(
            f"taxonomy of '{column}': expected a Taxonomy (Taxonomy.read(path) reads one), "
            f"got {type(attribute.taxonomy).__name__}."
        )


def _texts(column: str, key: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise PolicyError(f"{key} of '{column}': expected a list of values, got {given!r}.")
    return tuple(as_text(value) for value in given)


def _numbers(column: str, key: str, given: Any) -> tuple[float, ...]:
    try:
        return tuple(float(x) for x in given)
    except (TypeError, ValueError, OverflowError):
        raise PolicyError(f"{key} of '{column}': expected a list of numbers, got {given!r}.") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _without_markers(attribute: Any, texts: Sequence[str]) -> list[str]:
    markers = {*attribute.missing, MISSING}
    return [MISSING if text in markers else text for text in texts]


def _check_known(
    attribute: Any, values: Sequence[str], declared: Sequence[str], where: str, do: str = ""
) -> None:
    known = {*declared, MISSING}
    strange = sorted({value for value in values if value not in known})
    if strange:
        hint = did_you_mean(strange[0], declared) if len(strange) == 1 else ""
        raise UnknownValueError(
            f"{len(strange)} value{'s' * (len(strange) > 1)} of '{attribute.column}' "
            f"{'are' if len(strange) > 1 else 'is'} not in {where.strip()}: {listed(strange)}.{hint} "
            + (f"{do}." if do else 'Add them, or declare unknown="own value".')
        )


def _check_declared(attribute: Any, values: Sequence[str]) -> None:
    both = [marker for marker in attribute.missing if marker in values]
    if both:
        raise TaxonomyError(
            f"'{attribute.column}': {listed(both)} declared as missing and as a value. Remove one of the two."
        )
    strange = [s for s in attribute.sensitive or () if s not in values and s != MISSING]
    if strange and getattr(attribute, "unknown", "error") == "error":
        raise UnknownValueError(
            f"sensitive of '{attribute.column}': {listed(strange)} not among its values."
            + did_you_mean(strange[0], values)
        )


def _check_order(column: str, order: Sequence[str], positions: Sequence[float] | None) -> None:
    if not order:
        raise PolicyError(f"order of '{column}': expected the values, lowest first, got none.")
    if len(set(order)) < len(order) or MISSING in order:
        raise PolicyError(
            f"order of '{column}': expected different values, none of them missing, got {listed(order)}."
        )
    if positions is None:
        return
    numbers = _numbers(column, "positions", positions)
    if len(numbers) != len(order) or any(
        not (math.isfinite(b) and a < b) for a, b in pairwise((-math.inf, *numbers))
    ):
        raise PolicyError(
            f"positions of '{column}': expected {len(order)} ascending finite numbers, one a value, "
            f"got {list(numbers)}."
        )


def _check_ordered_taxonomy(attribute: Any, order: Sequence[str]) -> None:
    taxonomy = attribute.taxonomy
    if taxonomy is None:
        return
    if set(taxonomy.values) != set(order):
        odd = sorted(set(taxonomy.values) ^ set(order))
        raise TaxonomyError(
            f"taxonomy '{taxonomy.name}' of '{attribute.column}': expected exactly the declared values, "
            f"these stand on one side only: {listed(odd)}."
        )
    paths = {row[0]: row for row in taxonomy.rows}
    for level in range(1, taxonomy.height + 1):
        runs = [paths[value][level] for value in order]
        heads = [label for i, label in enumerate(runs) if i == 0 or runs[i - 1] != label]
        if len(heads) != len(set(heads)):
            torn = sorted({label for label in heads if heads.count(label) > 1})
            raise TaxonomyError(
                f"taxonomy '{taxonomy.name}' of '{attribute.column}': a coarse value of an ordered attribute "
                f"holds neighbouring values only; {listed(torn)} at level{level} has a gap."
            )
