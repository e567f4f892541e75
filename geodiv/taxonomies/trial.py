"""Trial: groupings of an attribute's values, each counted and judged exactly, many of them in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..errors import PolicyError, did_you_mean, listed
from ..labels import LabelSpace
from ..policy import LADDER, Gates, Policy
from ..reference import Against
from ..scores import Judge, expect_both
from ..tabulation import Counts, Tabulation

MOST = 12
"""Groupings that are counted in one go; it bounds memory, not results."""


@dataclass(frozen=True, eq=False)
class Trial:
    """The eligible cells of a table, one attribute of it, and a policy to try groupings of its values under.

    Parameters
    ----------
    table : Tabulation
    attribute : int
    judge : Judge
        Of the table as it is.
    rows : (eligible,) int64
        Cells with at least k_min persons, the only ones that are looked at.
    """

    table: Tabulation
    attribute: int
    judge: Judge
    rows: IntArray

    @classmethod
    def of(cls, table: Tabulation, policy: Policy, column: str | None = None) -> Trial:
        """The trial of one attribute, which need not be named where there is only one.

        Raises
        ------
        PolicyError
            No such attribute; several and none named; a policy that does not fit the table.
        """
        expect_both(table, policy)
        columns = [attribute.column for attribute in table.attributes]
        if column is None and len(columns) > 1:
            raise PolicyError(f"expected the name of one attribute, got none; there are {listed(columns)}.")
        if column is not None and column not in columns:
            raise PolicyError(
                f"expected an attribute of the visits, got {column!r}; there is {listed(columns)}."
                f"{did_you_mean(column, columns)}"
            )
        judge = Judge.of(table, replace(policy, ladder=LADDER))
        position = columns.index(column) if column is not None else 0
        return cls(table, position, judge, np.flatnonzero(judge.references.eligible))

    @property
    def space(self) -> LabelSpace:
        """The labels of the attribute as they are."""
        return self.table.spaces[self.attribute]

    @property
    def gates(self) -> Gates:
        """The thresholds of the attribute."""
        return self.judge.gates(self.attribute)

    @cached_property
    def counts(self) -> Counts:
        """Of the eligible cells."""
        return self.table.base.take(self.rows)

    @cached_property
    def against(self) -> Against:
        """What each eligible cell is judged against."""
        return self.judge.references.of_zones(self.counts.members)

    @cached_property
    def fine(self) -> FloatArray:
        """(eligible, values) distinct persons at the finest level."""
        return np.asarray(self.counts.labels[self.attribute][0].todense(), dtype=float)

    @cached_property
    def reference(self) -> FloatArray:
        """(eligible, values) pooled counts of each cell's reference; nan where there is none."""
        q = self.judge.references.pooled(self.against, self.attribute, 0, slice(None))
        return np.where(self.against.known[:, None], q, np.nan)

    @cached_property
    def mix(self) -> FloatArray:
        """(values,) pooled shares over all eligible cells."""
        overall = self.judge.references.overall[self.attribute][0]
        return overall / max(overall.sum(), 1.0)

    def judged(self, groupings: Sequence[IntArray]) -> tuple[BoolArray, FloatArray]:
        """How the eligible cells would stand, were they published under groupings of the values; counted again.

        Parameters
        ----------
        groupings : sequence of (values,) int64
            Group of each value, 0 to groups - 1, each with a value.

        Returns
        -------
        passes : (eligible, groupings) bool
            Whether a cell passes every gate of the attribute.
        effective : (eligible, groupings) float64
            Effective count of the belief.
        """
        passes = np.zeros((len(self.rows), len(groupings)), bool)
        effective = np.full(passes.shape, np.nan)
        for start in range(0, len(groupings), MOST):
            some = groupings[start : start + MOST]
            judge = self._judge(some)
            counts = judge.table.base.take(self.rows)
            for i in range(len(some)):
                found = judge.brief(counts, self.against, self.attribute, i + 1)
                passes[:, start + i] = ~found.fails.any(axis=1)
                effective[:, start + i] = found.effective
        return passes, effective

    def _judge(self, groupings: Sequence[IntArray]) -> Judge:
        """The judge of the same visits with each grouping as a level of its own."""
        spaces = [
            grouped(space, groupings if a == self.attribute else [])
            for a, space in enumerate(self.table.spaces)
        ]
        table = self.table.relabelled(spaces)
        return replace(self.judge, table=table, references=self.judge.references.relabelled(table))

    def fails_as_it_is(self) -> tuple[BoolArray, FloatArray]:
        """(eligible,) whether a cell fails at the finest level, and its effective count there."""
        found = self.judge.brief(self.counts, self.against, self.attribute, 0)
        return np.asarray(found.fails.any(axis=1)), found.effective


def grouped(space: LabelSpace, groupings: Sequence[IntArray]) -> LabelSpace:
    """The values of a label space with each grouping as a level; the levels need not nest."""
    ups = [space.up[0], *(np.asarray(g, dtype=np.int64) for g in groupings)]
    sizes = [len(space.values), *(int(up.max(initial=-1)) + 1 for up in ups[1:])]

    def below(flags: BoolArray) -> tuple[BoolArray, ...]:
        return tuple(np.bincount(u, weights=flags, minlength=n) > 0 for u, n in zip(ups, sizes, strict=True))

    return LabelSpace(
        levels=(space.values, *(tuple(str(i) for i in range(n)) for n in sizes[1:])),
        up=tuple(ups),
        publishable=(True,) * len(ups),
        sensitive=below(space.sensitive[0]),
        certain=below(space.certain[0]),
        tree=space.tree,
    )
