"""The label space of an attribute: all nodes of its taxonomy, level by level, and its ground distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .ground import Tree, star
from .taxonomy import Taxonomy
from .text import MISSING


@dataclass(frozen=True, slots=True, eq=False)
class LabelSpace:
    """Labels of every level of one attribute. Codes are positions in these tuples; ``(missing)`` comes last.

    Parameters
    ----------
    levels : tuple over levels of tuple of str
        ``levels[0]`` are the values (sorted as text, or in the declared order), ``levels[h]`` the labels of
        taxonomy level h in the order of the first value below them: the label order that decides ties.
    up : tuple over levels of (values,) int64
        ``up[h][v]``: code of the level-h label above value v; ``up[0]`` is the identity.
    publishable : tuple over levels of bool
        A coarse level with a single label (missing apart) cannot be published: it would pass everything.
    sensitive : tuple over levels of (labels,) bool
        The sensitive tier; a label counts when any value below it does.
    certain : tuple over levels of (labels,) bool
        Labels that ``incidence_max`` looks at: the tier, without ``(missing)`` unless it is named.
    tree : Tree
        The ground distance over the values.
    """

    levels: tuple[tuple[str, ...], ...]
    up: tuple[NDArray[np.int64], ...]
    publishable: tuple[bool, ...]
    sensitive: tuple[NDArray[np.bool_], ...]
    certain: tuple[NDArray[np.bool_], ...]
    tree: Tree

    @property
    def values(self) -> tuple[str, ...]:
        """The finest labels."""
        return self.levels[0]

    @property
    def missing(self) -> int | None:
        """Code of ``(missing)`` among the values, or None when nothing is missing."""
        return len(self.values) - 1 if self.values and self.values[-1] == MISSING else None

    def with_tree(self, tree: Tree) -> LabelSpace:
        """The same labels under another ground distance."""
        return replace(self, tree=tree)


def label_space(
    taxonomy: Taxonomy | None, values: Sequence[str], missing: bool, sensitive: Sequence[str] | None
) -> LabelSpace:
    """The label space of `values` (in label order, without ``(missing)``) under a taxonomy.

    A value that the taxonomy does not hold keeps itself at every level; ``(missing)`` is a class of its own.
    """
    everything = (*values, MISSING) if missing else tuple(values)
    paths = {row[0]: row for row in taxonomy.rows} if taxonomy else {}
    height = taxonomy.height if taxonomy else 0
    above = {row[h]: row[h:] for h in range(height, 0, -1) for row in paths.values()}
    chains = [paths.get(value) or _own_chain(value, above, height) for value in values]
    levels, up = [everything], [np.arange(len(everything))]
    for h in range(1, height + 1):
        column = [chain[h] for chain in chains]
        order = list(dict.fromkeys(column))
        codes = {label: i for i, label in enumerate(order)}
        up.append(np.array([codes[c] for c in column] + [len(order)] * missing, dtype=np.int64))
        levels.append((*order, MISSING) if missing else tuple(order))
    tier = np.ones(len(everything), bool) if sensitive is None else np.isin(everything, [*sensitive, MISSING])
    certain = tier.copy()
    if missing and (sensitive is None or MISSING not in sensitive):
        certain[-1] = False
    return LabelSpace(
        levels=tuple(levels),
        up=tuple(up),
        publishable=tuple(h == 0 or len(names) - missing > 1 for h, names in enumerate(levels)),
        sensitive=tuple(_any_below(tier, codes, len(names)) for codes, names in zip(up, levels, strict=True)),
        certain=tuple(
            _any_below(certain, codes, len(names)) for codes, names in zip(up, levels, strict=True)
        ),
        tree=star(len(everything)),
    )


def _own_chain(value: str, above: Mapping[str, tuple[str, ...]], height: int) -> tuple[str, ...]:
    """A value outside the taxonomy keeps itself; one named like a label has what stands above that label."""
    upper = above.get(value, (value,))
    return (value,) * (height + 1 - len(upper)) + upper


def _any_below(flags: NDArray[np.bool_], codes: NDArray[np.int64], labels: int) -> NDArray[np.bool_]:
    return np.bincount(codes, weights=flags, minlength=labels) > 0
