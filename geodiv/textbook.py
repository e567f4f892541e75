"""The textbook functions: l-diversity, t-closeness and their remedies on plain frames and arrays.

Each is a thin call of the code that a run uses, under the name it has in teaching material. They judge each
cell by itself and remedy nothing; `geodiv.enforce` coarsens, merges, re-counts and judges again.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .errors import SourceError, UsageError, did_you_mean, listed
from .ground import path, star
from .labels import LabelSpace, label_space
from .measures import (
    distinct,
    effective_count,
    max_lift,
    max_shift,
    shares,
    spread,
    top,
    top_share,
    tree_distance,
    within_class,
)
from .policy import Gates, meets
from .taxonomy import Taxonomy
from .text import MISSING, as_text

IntArray = NDArray[np.int64]
Triage = Literal["publish", "coarsen_attribute", "merge_or_suppress"]
_KEYS = ("cell", "value", "person")


def cell_attribute_table(df: pd.DataFrame) -> pd.DataFrame:
    """Distinct persons of each cell and value.

    Parameters
    ----------
    df : DataFrame
        Visits, with the columns cell_id, sensitive and person_id. It is not written to.

    Returns
    -------
    DataFrame
        cell_id, sensitive and n (int64, distinct persons, at least 1), sorted by cell and value as text. A
        missing value is ``(missing)``; rows without a cell or a person are not counted.

    Notes
    -----
    A person may hold several values of a cell, so the sum of n over a cell is no count of its persons.

    Examples
    --------
    >>> visits = pd.DataFrame(
    ...     {"cell_id": ["a", "a", "a"], "sensitive": ["clinic", "clinic", "cafe"], "person_id": [1, 1, 2]}
    ... )
    >>> cell_attribute_table(visits)
      cell_id sensitive  n
    0       a      cafe  1
    1       a    clinic  1
    """
    cells, values, found = _contributions(df, "cell_id", "sensitive", "person_id")
    counts = found.groupby(["cell", "value"]).size()
    cell, value = (counts.index.get_level_values(i).to_numpy() for i in (0, 1))
    named = np.array(values, dtype=object)[value]
    return pd.DataFrame({"cell_id": cells[cell], "sensitive": named, "n": counts.to_numpy(np.int64)})


def entropy_diversity(counts: ArrayLike) -> Any:
    """Effective number of values, ``exp(H)``, of counts or shares.

    Parameters
    ----------
    counts : (..., values) int64 or float64
        Distinct persons of each value; normalised inside.

    Returns
    -------
    (...) float64
        1 to the number of positive counts; nan when there is none. Compare it with `geodiv.policy.meets`: of
        (1, 1, 1) it is 2.9999999999999996.

    Notes
    -----
    Entropy l-diversity (Machanavajjhala et al. 2007).

    Examples
    --------
    >>> round(float(entropy_diversity([41, 3, 2, 2])), 2)
    1.77
    """
    return effective_count(shares(counts))


def closeness(p: ArrayLike, q: ArrayLike, ordered: bool) -> Any:
    """Distance of two mixes: total variation, or the ordered Earth Mover's Distance.

    Parameters
    ----------
    p, q : (..., values) int64 or float64
        Counts or shares of the same values, in their order when they have one; normalised inside.
    ordered : bool
        Whether the values are ordered, at equal gaps.

    Returns
    -------
    (...) float64
        0 to 1; nan where a side has no mass; 0 for a single value.

    Raises
    ------
    UsageError
        The two do not hold the same number of values.

    Notes
    -----
    t-closeness (Li, Li and Venkatasubramanian 2007): ``1/2 sum |p - q|``, or
    ``sum |cumsum(p - q)| / (m - 1)`` for m ordered values.

    Examples
    --------
    >>> nine = [1, 1, 0, 0, 0, 0, 0, 0, 0]
    >>> float(closeness([1, 0, 0, 0, 0, 0, 0, 0, 0], nine, ordered=True))
    0.0625
    >>> float(closeness([1, 0, 0, 0, 0, 0, 0, 0, 0], nine, ordered=False))
    0.5
    """
    p, q = shares(p), shares(q)
    _same_values(p, q)
    values = p.shape[-1]
    tree = path(range(values), missing=False) if ordered and values else star(values)
    return tree_distance(p, q, tree)


def posterior_shift(cell_counts: ArrayLike, global_counts: ArrayLike) -> dict[str, float | int]:
    """What knowing the cell adds to knowing the whole.

    Parameters
    ----------
    cell_counts, global_counts : (values,) int64 or float64
        Counts or shares of the same values in the cell and in the baseline.

    Returns
    -------
    dict
        max_shift (largest absolute difference, 0 to 1), argmax_index (its value; ties: first; -1 when there
        is no mass), cell_top_prob (the cell's largest share), baseline_top_prob (the baseline's share of that
        same value), max_lift (largest ratio; inf where the baseline rules out what the cell holds). All nan
        without mass on either side.

    Raises
    ------
    UsageError
        The two do not hold the same number of values, or none.

    Examples
    --------
    >>> found = posterior_shift([12, 88], [4, 96])
    >>> {name: round(x, 2) for name, x in found.items()}
    {'max_shift': 0.08, 'argmax_index': 0, 'cell_top_prob': 0.88, 'baseline_top_prob': 0.96, 'max_lift': 3.0}
    """
    p, q = shares(cell_counts), shares(global_counts)
    _same_values(p, q)
    if p.ndim != 1 or not p.size:
        raise UsageError(
            f"expected the counts of one cell, a flat list of at least one, got shape {p.shape}."
        )
    everything = np.ones(p.size, bool)
    first = int(top(p))
    worst = int(np.abs(p - q).argmax()) if not np.isnan(p + q).any() else -1
    return {
        "max_shift": float(max_shift(p, q, everything)),
        "argmax_index": worst,
        "cell_top_prob": float(top_share(p, everything)),
        "baseline_top_prob": float(q[first]) if first >= 0 else float("nan"),
        "max_lift": float(max_lift(p, q, everything)),
    }


def remedy(cell: Hashable, l_eff: float, t_dist: float, l_min: float, t_max: float) -> Triage:
    """A first guess at what a cell needs.

    Parameters
    ----------
    cell : hashable
        Its id; it does not matter to the answer.
    l_eff, t_dist : float
        Its effective count and its distance; nan holds no threshold.
    l_min, t_max : float

    Returns
    -------
    {"publish", "coarsen_attribute", "merge_or_suppress"}
        publish when both thresholds hold; coarsen_attribute when ``l_eff >= 0.6 l_min``; else
        merge_or_suppress.

    Notes
    -----
    A triage: whether a coarser value or a neighbour really helps is known only once it has been counted and
    judged, which is what `geodiv.enforce` does.

    Examples
    --------
    >>> remedy("c-72", 3.86, 0.21, l_min=3, t_max=0.3), remedy("c-58", 1.77, 0.23, l_min=3, t_max=0.3)
    ('publish', 'merge_or_suppress')
    """
    if meets("l_min", l_eff, l_min) and meets("t_max", t_dist, t_max):
        return "publish"
    return "coarsen_attribute" if meets("l_min", l_eff, 0.6 * l_min) else "merge_or_suppress"


def enforce_l_diversity(
    visits: pd.DataFrame,
    l_min: float,
    coarse_map: Mapping[Any, Any] | None = None,
    cell_col: str = "cell_id",
    cat_col: str = "poi_category",
    person_col: str = "person_id",
) -> pd.DataFrame:
    """The verdict on each cell: publish, publish with coarser categories, or merge or suppress.

    Parameters
    ----------
    visits : DataFrame
        One row a visit. It is not written to. Rows without a cell or a person are not counted; a missing
        category is a category of its own.
    l_min : float
        Effective number of categories that a cell must have, at least 1.
    coarse_map : mapping, optional
        Coarser category of each category; one outside the map keeps itself.
    cell_col, cat_col, person_col : str

    Returns
    -------
    DataFrame
        One row a cell, least diverse first (ties: cell id as text): `cell_col`, distinct_categories (int64),
        effective_fine, effective_coarse (float64, rounded to 2; the latter nan for cells that pass as they
        are and without a map), persons (int64, distinct), remedy.

    Raises
    ------
    SourceError
        A column is not there.
    PolicyError, TaxonomyError
        l_min is below 1, or the map is none.

    Notes
    -----
    A cell is published coarsened when what a reader of its coarse categories believes of the fine ones,
    ``P(c) q(v | c)`` with q pooled over all visits, is diverse enough; the diversity of the coarse categories
    themselves says nothing. Persons are re-counted under the coarse categories. Verdicts fall before
    rounding.

    Examples
    --------
    >>> visits = pd.DataFrame(
    ...     {"cell_id": ["a"] * 4 + ["b"] * 3, "poi_category": [*"vwxy", *"vvw"], "person_id": range(7)}
    ... )
    >>> enforce_l_diversity(visits, 3)[["cell_id", "effective_fine", "persons", "remedy"]]
      cell_id  effective_fine  persons             remedy
    0       b            1.89        3  merge_or_suppress
    1       a            4.00        4            publish
    """
    threshold = Gates(l_min=l_min).l_min or 1.0
    cells, values, found = _contributions(visits, cell_col, cat_col, person_col)
    counts = _counts(found, len(cells), len(values))
    fine = effective_count(shares(counts))
    passes = meets("l_min", fine, threshold)
    coarse, rescued = np.full(len(cells), np.nan), np.zeros(len(cells), bool)
    if coarse_map is not None and len(coarse_map):
        space, code = _coarse_space(coarse_map, values)
        belief = _coarse_belief(found, counts.sum(axis=0), space, code)
        coarse = np.where(passes, np.nan, effective_count(belief))
        rescued = meets("l_min", coarse, threshold) & space.publishable[1]
    verdicts = np.select([passes, rescued], ["publish", "publish_coarsened"], "merge_or_suppress")
    result = pd.DataFrame(
        {
            cell_col: cells,
            "distinct_categories": distinct(counts),
            "effective_fine": fine.round(2),
            "effective_coarse": coarse.round(2),
            "persons": np.bincount(found.drop_duplicates(["cell", "person"])["cell"], minlength=len(cells)),
            "remedy": verdicts,
        }
    )
    return result.iloc[np.argsort(fine, kind="stable")].reset_index(drop=True)


def _same_values(p: NDArray[np.float64], q: NDArray[np.float64]) -> None:
    if p.ndim == 0 or q.ndim == 0 or p.shape[-1] != q.shape[-1]:
        raise UsageError(
            f"expected counts or shares of the same values on both sides, got shapes {p.shape} and {q.shape}."
        )


def _contributions(
    visits: pd.DataFrame, cell_col: str, cat_col: str, person_col: str
) -> tuple[Any, list[str], pd.DataFrame]:
    """Cells as they came and values as text, sorted as text, and each distinct (cell, value, person) code."""
    for name in (cell_col, cat_col, person_col):
        if name not in visits.columns:
            raise SourceError(
                f"expected a column {name!r} of visits, got {listed(visits.columns)}."
                + did_you_mean(name, visits.columns)
            )
    columns = [_texts(visits[name]) for name in (cell_col, cat_col, person_col)]
    kept = np.logical_and(*(_named(texts)[code] for code, texts in (columns[0], columns[2])))
    packed = [pd.factorize(code[kept], sort=True) for code, _ in columns]
    found = pd.DataFrame({name: code for name, (code, _) in zip(_KEYS, packed, strict=True)})
    _, first = np.unique(found["cell"].to_numpy(), return_index=True)
    cells = visits[cell_col][kept].iloc[first].to_numpy()
    return cells, list(columns[1][1][packed[1][1]]), found.drop_duplicates()


def _texts(column: pd.Series[Any]) -> tuple[IntArray, NDArray[Any]]:
    """(rows,) codes into the distinct texts of a column, sorted; only distinct values are converted."""
    code, originals = pd.factorize(column)
    to, texts = pd.factorize(np.array([*map(as_text, originals), MISSING], dtype=object), sort=True)
    return to[code], texts


def _named(texts: NDArray[Any]) -> NDArray[np.bool_]:
    return np.array([bool(text.strip()) and text != MISSING for text in texts], dtype=bool)


def _counts(found: pd.DataFrame, cells: int, values: int) -> IntArray:
    """(cells, values) distinct persons."""
    flat = found["cell"].to_numpy() * values + found["value"].to_numpy()
    return np.bincount(flat, minlength=cells * values).reshape(cells, values)


def _coarse_space(coarse_map: Mapping[Any, Any], values: Sequence[str]) -> tuple[LabelSpace, IntArray]:
    """The labels of the map and of the values that occur, and the code of each of these values."""
    rows = tuple((value, label) for value, label in coarse_map.items() if as_text(value) != MISSING)
    taxonomy = Taxonomy(rows, "coarse_map")
    known = sorted({*taxonomy.values, *values} - {MISSING})
    space = label_space(taxonomy, known, MISSING in values, None)
    return space, np.array([space.values.index(value) for value in values], dtype=np.int64)


def _coarse_belief(found: pd.DataFrame, pooled: IntArray, space: LabelSpace, code: IntArray) -> Any:
    """(cells, values): what a reader of a cell's coarse categories, re-counted, believes of the fine ones."""
    up, labels = space.up[1], len(space.levels[1])
    mix = np.bincount(code, weights=pooled, minlength=len(space.values))
    coarse = found.assign(value=up[code][found["value"]]).drop_duplicates()
    cells = int(found["cell"].max()) + 1 if len(found) else 0
    label_shares = shares(_counts(coarse, cells, labels))
    return spread(label_shares, within_class(mix, up, labels, mix), up)
