"""Policy: the gates a zone must pass, the reference it is judged against, and the remedies where it fails."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .attribute import Attribute
from .errors import PolicyError, did_you_mean, listed
from .places import Places
from .text import MISSING, as_text

Remedy = Literal["recode", "merge", "suppress"]
RecodeScope = Literal["zone", "release"]
Fallback = Literal["global", "none"]

LADDER: tuple[Remedy, ...] = ("recode", "merge", "suppress")
"""The visible order: coarsen the attribute first, merge cells next, suppress last."""

FLOORS = frozenset({"k_min", "l_min", "label_min"})
"""Gates that hold at or above their threshold; the others hold at or below it, ``c_max`` strictly."""

GATES = (
    "k_min",
    "l_min",
    "c_max",
    "t_max",
    "shift_max",
    "lift_max",
    "share_max",
    "incidence_max",
    "label_min",
    "tier_max",
    "tier_incidence_max",
)
"""Every gate, in the order in which ``fails`` names them (``no_reference`` comes last)."""


MOST = 2**53
"""Largest whole number of a policy: all up to it are floating-point numbers too."""
FARTHEST = 100
"""Largest order of a ring: a disk of it holds 30,301 cells."""
LARGEST = 1000
"""Most cells of a merged zone."""


def meets(gate: str, x: ArrayLike, threshold: float) -> NDArray[np.bool_]:
    """Whether measures hold a gate: the one function that decides, everywhere.

    Parameters
    ----------
    gate : str
        One of `GATES`.
    x : (...) float64
        The measure; NaN never passes.
    threshold : float

    Returns
    -------
    (...) bool
        ``x >= threshold - tol`` for a floor, ``x <= threshold + tol`` for a ceiling,
        ``tol = 1e-9 max(1, |threshold|)`` (exp(H) of (1, 1, 1) is 2.9999999999999996); ``c_max`` is strict,
        ``x < threshold - tol``, so that what equals it fails, however its last digit was rounded.

    Examples
    --------
    >>> bool(meets("l_min", 2.9999999999999996, 3)), bool(meets("c_max", 3.0, 3))
    (True, False)
    >>> bool(meets("t_max", np.nan, 1))
    False
    """
    x = np.asarray(x, dtype=float)
    tolerance = 1e-9 * max(1.0, abs(threshold))
    if gate == "c_max":
        return x < threshold - (tolerance if math.isfinite(threshold) else 0.0)
    if gate in FLOORS:
        return x >= threshold - tolerance
    return x <= threshold + tolerance


@dataclass(frozen=True, slots=True)
class Global:
    """Judge each zone against the pooled mix of all eligible cells."""


@dataclass(frozen=True, slots=True)
class Ring:
    """Judge each zone against the eligible cells around it, its own cells excluded.

    Parameters
    ----------
    order : int, default 1
        Steps around the zone, at most 100.
    max_order : int, optional
        How far the ring widens when it holds fewer than `min_persons` or no cell; `order` unless given.
    min_persons : int, default 1
        Persons (once per cell) that a ring needs.
    fallback : {"global", "none"}
        What a zone without a sufficient ring is judged against; with "none" the distance, shift and lift
        gates fail.
    """

    order: int = 1
    max_order: int | None = None
    min_persons: int = 1
    fallback: Fallback = "global"

    def __post_init__(self) -> None:
        _plain(self)
        _whole("order", self.order, 1, FARTHEST)
        object.__setattr__(self, "max_order", self.order if self.max_order is None else self.max_order)
        _whole("max_order", self.max_order, self.order, FARTHEST)
        _check_fallback(self.min_persons, self.fallback)


@dataclass(frozen=True, slots=True)
class Region:
    """Judge each zone against the eligible cells of its own declared region.

    Parameters
    ----------
    regions : mapping of str to str
        Region of each cell id, both compared as text; None and NaN are no region. A merged zone takes every region
        that its members lie in; a cell without a region has no reference and takes the fallback.
    min_persons, fallback
        As for `Ring`; a region does not widen.
    """

    regions: Mapping[str, str]
    min_persons: int = 1
    fallback: Fallback = "global"

    def __post_init__(self) -> None:
        if not isinstance(self.regions, Mapping):
            raise PolicyError(
                f"regions: expected a mapping of cell id to region, got {type(self.regions).__name__}."
            )
        regions: dict[str, str] = {}
        for cell, region in self.regions.items():
            name = as_text(region)
            if name != MISSING and regions.setdefault(as_text(cell), name) != name:
                raise PolicyError(
                    "regions: expected one region a cell, got a cell twice, with different ones."
                )
        object.__setattr__(self, "regions", regions)
        _check_fallback(self.min_persons, self.fallback)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Judge each zone against a weighted sum of other cells, by any libpysal ``Graph`` or ``W`` of cell ids.

    Parameters
    ----------
    graph : libpysal.graph.Graph or libpysal.weights.W
        ``Q = sum_j w_j n(j, v)``, weights as they are; a merged zone takes the largest member weight to each
        neighbour, members excluded.
    min_persons, fallback
        As for `Ring`; weights do not widen.
    """

    graph: Any
    min_persons: int = 1
    fallback: Fallback = "global"

    def __post_init__(self) -> None:
        if not (hasattr(self.graph, "adjacency") or hasattr(self.graph, "neighbors")):
            raise PolicyError(f"weights: expected a libpysal Graph or W, got {type(self.graph).__name__}.")
        _check_fallback(self.min_persons, self.fallback)


Reference = Global | Ring | Region | Weights


@dataclass(frozen=True, slots=True)
class Gates:
    """Thresholds of one attribute; a gate that is None is off. See `Policy` for each."""

    k_min: int = 10
    l_min: float | None = None
    c_l: int | None = None
    c_max: float | None = None
    t_max: float | None = None
    shift_max: float | None = None
    lift_max: float | None = None
    share_max: float | None = None
    incidence_max: float | None = None
    label_min: int | None = None
    tier_max: float | None = None
    tier_incidence_max: float | None = None

    def __post_init__(self) -> None:
        _plain(self)
        _whole("k_min", self.k_min, 1)
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and low <= value <= high):
                wanted = f"from {low:g} to {high:g}" if high < math.inf else f"of at least {low:g}"
                raise PolicyError(f"{name}: expected a number {wanted}, got {value!r}.")
        for name in ("c_l", "label_min"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), 1)
        if (self.c_l is None) != (self.c_max is None):
            raise PolicyError("c_l and c_max belong together: expected both or neither.")


_RANGES = (
    ("l_min", 1.0, math.inf),
    ("c_max", 0.0, math.inf),
    ("t_max", 0.0, 1.0),
    ("shift_max", 0.0, 1.0),
    ("lift_max", 1.0, math.inf),
    ("share_max", 0.0, 1.0),
    ("incidence_max", 0.0, 1.0),
    ("tier_max", 0.0, 1.0),
    ("tier_incidence_max", 0.0, 1.0),
)
TIER = ("tier_max", "tier_incidence_max")
"""Gates on the sensitive tier as a whole: they mean something only where an attribute names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a release must hold, and what is done to a zone that does not.

    Parameters
    ----------
    k_min : int, default 10
        Distinct persons in a zone. Below 10 entropy means nothing.
    l_min : float, optional
        Effective number of values, exp(H), of the reader's belief.
    c_l, c_max : int and float, optional
        Recursive (c, l)-diversity of the belief, ``c < c_max`` strictly.
    t_max : float, optional
        Distance of the belief to the prior, 0 to 1; it means something only beside its reference.
    shift_max, lift_max : float, optional
        Largest rise or fall of the belief in one value, as a difference and as a ratio to the prior.
    share_max : float, optional
        Largest belief in one value.
    incidence_max : float, optional
        Largest share of a zone's persons under one published label.
    label_min : int, optional
        No published label has fewer persons than this, but for none.
    tier_max : float, optional
        Largest belief that a visit was to any value of the sensitive tier, whichever; for attributes that name it.
    tier_incidence_max : float, optional
        Largest share of a zone's persons who did anything of the tier, each counted once.
    reference : Global, Ring, Region or Weights, default Global()
    ladder : tuple, default ("recode", "merge", "suppress")
        The remedies, a sub-list of these in this order.
    recode_scope : {"zone", "release"}
        Coarsen failing zones only, or one level for all.
    max_members : int, default 7
        Cells of a merged zone at most; 1000 at most.
    max_rounds : int, default 20
    residual : bool, default True
        Whether the eligible cells that are not published must be safe as a group, against subtraction.
    places : tuple of Places, optional
        What a reader with a map knows, for some attributes. A coarser label must then pass every gate for two
        readers: the one who knows the reference, and the one who spreads it over the places of the zone as well.

    Raises
    ------
    PolicyError
        A threshold out of its range, an unknown remedy or reference.

    Examples
    --------
    >>> policy = Policy(l_min=3, t_max=0.3, reference=Ring(order=1, max_order=3, min_persons=30))
    >>> policy.k_min, policy.ladder
    (10, ('recode', 'merge', 'suppress'))
    """

    k_min: int = 10
    l_min: float | None = None
    c_l: int | None = None
    c_max: float | None = None
    t_max: float | None = None
    shift_max: float | None = None
    lift_max: float | None = None
    share_max: float | None = None
    incidence_max: float | None = None
    label_min: int | None = None
    tier_max: float | None = None
    tier_incidence_max: float | None = None
    reference: Reference = Global()
    ladder: tuple[Remedy, ...] = LADDER
    recode_scope: RecodeScope = "zone"
    max_members: int = 7
    max_rounds: int = 20
    residual: bool = True
    places: tuple[Places, ...] = ()

    def __post_init__(self) -> None:
        _plain(self)
        self.thresholds()
        if not isinstance(self.reference, Global | Ring | Region | Weights):
            raise PolicyError(f"reference: expected Global, Ring, Region or Weights, got {self.reference!r}.")
        ladder = () if isinstance(self.ladder, str) else tuple(self.ladder)
        if isinstance(self.ladder, str) or tuple(r for r in LADDER if r in ladder) != ladder:
            raise PolicyError(
                f"ladder: expected a sub-list of {listed(LADDER)} in this order, got {self.ladder!r}."
            )
        object.__setattr__(self, "ladder", tuple(self.ladder))
        if self.recode_scope not in ("zone", "release"):
            raise PolicyError(f"recode_scope: expected 'zone' or 'release', got {self.recode_scope!r}.")
        _whole("max_members", self.max_members, 1, LARGEST)
        _whole("max_rounds", self.max_rounds, 1)
        if not isinstance(self.residual, bool):
            raise PolicyError(f"residual: expected true or false, got {self.residual!r}.")
        self._check_places()

    def _check_places(self) -> None:
        places = (self.places,) if isinstance(self.places, Places) else self.places
        if not isinstance(places, tuple | list) or not all(isinstance(p, Places) for p in places):
            raise PolicyError(
                "places: expected Places (read_places(path, grid, attribute) reads a map), got something else."
            )
        names = [p.attribute for p in places]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise PolicyError(f"places: expected one map an attribute, got several for {listed(twice)}.")
        object.__setattr__(self, "places", tuple(places))

    def thresholds(self, attribute: Attribute | None = None) -> Gates:
        """The gates of the policy, with those of one attribute over them."""
        gates = Gates(**{f.name: getattr(self, f.name) for f in fields(Gates)})
        if attribute is None:
            return gates
        known = {f.name for f in fields(Gates)} - {"k_min"}
        for name in attribute.gates:
            if name not in known:
                why = " (k_min counts persons, whatever the attribute)" if name == "k_min" else ""
                raise PolicyError(
                    f"gates of '{attribute.column}': expected gates an attribute may override{why}, "
                    f"got {name!r}.{did_you_mean(name, known)}"
                )
        own: dict[str, Any] = dict(attribute.gates)
        gates = replace(gates, **own)
        if attribute.sensitive is None and (set_ := [g for g in TIER if getattr(gates, g) is not None]):
            raise PolicyError(
                f"{set_[0]} for '{attribute.column}': expected an attribute that names its sensitive values, and this "
                "one names none. Name them (sensitive = [...]), or give the gate to another attribute alone."
            )
        return gates

    def check(self, attribute: Attribute, values: int) -> None:
        """Raise when a gate asks more than an attribute with this many values can give."""
        l_min = self.thresholds(attribute).l_min
        if l_min is not None and not meets("l_min", values, l_min):
            raise PolicyError(
                f"l_min = {l_min:g} for '{attribute.column}': it has {values} values, and no zone can be "
                "more diverse than that. Lower l_min, or give the attribute gates of its own."
            )


def _plain(record: Any) -> None:
    """Numbers of NumPy become Python's, so that a policy can be compared, echoed and written."""
    for f in fields(record):
        value = getattr(record, f.name)
        if isinstance(value, np.generic):
            object.__setattr__(record, f.name, value.item())


def _is_number(value: Any) -> bool:
    fits = isinstance(value, float) or (isinstance(value, int) and abs(value) <= MOST)
    return fits and not isinstance(value, bool) and math.isfinite(value)


def _whole(name: str, value: Any, low: int, high: int = MOST) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise PolicyError(f"{name}: expected a whole number of at least {low}, got {value!r}.")
    if value > high:
        raise PolicyError(f"{name}: expected a whole number of at most {high}, got a larger one.")


def _check_fallback(min_persons: Any, fallback: Any) -> None:
    _whole("min_persons", min_persons, 1)
    if fallback not in ("global", "none"):
        raise PolicyError(f"fallback: expected 'global' or 'none', got {fallback!r}.")
