"""Plots of mixes: the labels of a zone or a cell beside those that it is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .drawing import literal, new_axes, one_attribute, tidy
from .errors import UsageError, did_you_mean
from .measures import shares
from .policy import Policy
from .release import Release
from .scores import Judge
from .tabulation import Tabulation
from .wording import scope_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def mix_plot(release: Release, cell_id: str, *, attribute: str | None = None, ax: Axes | None = None) -> Axes:
    """The published mix of a zone against the published mix of the whole area, at the zone's level.

    Parameters
    ----------
    release : Release
    cell_id : str
        Of a published zone without hidden counts in this attribute.
    attribute : str, optional
        Needed where there are several.
    ax : Axes, optional

    Raises
    ------
    UsageError
        No such zone is published, or its counts are hidden.

    Examples
    --------
    >>> import geodiv as gd
    >>> release = gd.read_run("fixtures/policy.toml").enforce("fixtures/visits.parquet").release
    >>> shown = release.cells["income_band_effective"].notna()
    >>> ax = mix_plot(release, release.cells.loc[shown, "cell_id"].iloc[0], attribute="income_band")
    >>> ax.get_title()
    'income_band: a zone against the whole area'
    """
    attribute = one_attribute([r["column"] for r in release.metadata.get("attributes", [])], attribute)
    found = release.counts[
        (release.counts["cell_id"] == cell_id) & (release.counts["attribute"] == attribute)
    ]
    if not len(found):
        raise UsageError(
            f"expected the id of a published zone, got "
            f"{cell_id!r}.{did_you_mean(cell_id, release.cells['cell_id'])}"
        )
    if found["share"].isna().any():
        raise UsageError(
            f"the counts of zone {cell_id!r} for {attribute!r} are hidden in part: there is no mix to draw."
        )
    level = int(found["level"].iloc[0])
    mix = release.reference[
        (release.reference["attribute"] == attribute) & (release.reference["level"] == level)
    ]
    told = found.set_index("value")["share"].astype(float)
    labels = list(mix["value"]) or list(told.index)
    title = f"{literal(attribute)}: a zone against the whole area" + (f" (level {level})" if level else "")
    whole = [float(q) for q in mix["share"]] or None
    mine = [float(told.get(label, 0.0)) for label in labels]
    return _mixes(ax, labels, mine, f"zone {literal(cell_id)}", whole, "the whole area", title)


def cell_mix_plot(
    table: Tabulation, policy: Policy, cell_id: str, *, attribute: str | None = None, ax: Axes | None = None
) -> Axes:
    """Internal: the mix of a cell against the reference that the policy judges it by, at the finest values.

    Parameters
    ----------
    table : Tabulation
    policy : Policy
    cell_id : str
        Of an occupied cell, published or not.
    attribute : str, optional
        Needed where there are several.
    ax : Axes, optional

    Raises
    ------
    UsageError
        No such cell.

    Examples
    --------
    >>> import geodiv as gd
    >>> run = gd.read_run("fixtures/policy.toml")
    >>> table = run.tabulate("fixtures/visits.parquet")
    >>> ax = cell_mix_plot(table, run.policy, "8819635287fffff", attribute="poi_category")
    >>> "internal" in ax.get_title()
    True
    """
    columns = [a.column for a in table.attributes]
    attribute = one_attribute(columns, attribute)
    a = columns.index(attribute)
    row = np.flatnonzero(table.cells.astype(str) == cell_id)
    if not len(row):
        raise UsageError(
            f"expected the id of an occupied cell, got {cell_id!r}.{did_you_mean(cell_id, table.cells)}"
        )
    judge = Judge.of(table, policy)
    counts = table.base.take(row)
    against = judge.references.of_zones(counts.members)
    pooled = judge.references.overall[a][0]
    if against.local[0]:
        pooled = judge.references.pooled(against, a, 0, slice(0, 1))[0]
    scope = str(against.scope[0])
    title = f"{literal(attribute)}: a cell against its reference (internal)"
    mine = shares(counts.labels[a][0].toarray())[0].tolist()
    other = None if scope == "none" else shares(pooled).tolist()
    labels = list(table.spaces[a].values)
    return _mixes(
        ax, labels, mine, f"cell {literal(cell_id)}", other, f"{scope}: {scope_words(scope)}", title
    )


def _mixes(
    ax: Axes | None,
    labels: Sequence[str],
    mine: Sequence[float],
    name: str,
    other: Sequence[float] | None,
    other_name: str,
    title: str,
) -> Axes:
    ax = ax or new_axes(height=max(2.6, 0.34 * len(labels) + 1.4))
    place = np.arange(len(labels))
    ax.barh(place - 0.2, mine, height=0.38, color="#0B4F8A", label=name)
    if other is not None:
        ax.barh(place + 0.2, other, height=0.38, color="#B9BEC6", label=other_name)
    ax.set_yticks(place, [literal(label) for label in labels])
    ax.invert_yaxis()
    ax.set(xlabel="share of the labels, 0 to 1", xlim=(0, None))
    ax.set_title(title)
    tidy(ax, grid="x")
    return ax
