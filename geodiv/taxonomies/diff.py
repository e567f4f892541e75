"""Diff: how two taxonomies differ."""

from __future__ import annotations

from dataclasses import dataclass

from ..taxonomy import Taxonomy


@dataclass(frozen=True, slots=True)
class TaxonomyDiff:
    """What is in one taxonomy and not in the other.

    Parameters
    ----------
    before, after : tuple of str
        Name, version and digest of each.
    added, removed : tuple of str
        Values.
    moved : tuple of (str, int, str, str)
        Value, level, its label before and after; only at levels that both have.
    labels_added, labels_removed : tuple of (int, str)
        Level and label.
    levels : tuple of int
        Number of levels of each.
    """

    before: tuple[str, str, str]
    after: tuple[str, str, str]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    moved: tuple[tuple[str, int, str, str], ...]
    labels_added: tuple[tuple[int, str], ...]
    labels_removed: tuple[tuple[int, str], ...]
    levels: tuple[int, int]

    @property
    def same(self) -> bool:
        """Whether both say the same of every value: only then can releases under them be compared."""
        return self.before[2] == self.after[2]

    def words(self) -> tuple[str, ...]:
        """The difference, a line each."""
        names = ("name", "version", "digest")
        lines = [
            f"{n}: {a or '-'} | {b or '-'}" for n, a, b in zip(names, self.before, self.after, strict=True)
        ]
        if self.same:
            return (*lines, "the two say the same of every value.")
        if self.levels[0] != self.levels[1]:
            lines.append(f"levels: {self.levels[0]} | {self.levels[1]}")
        lines += [f"added: {value}" for value in self.added]
        lines += [f"removed: {value}" for value in self.removed]
        lines += [f"moved: {value}, level{level}: {a} -> {b}" for value, level, a, b in self.moved]
        lines += [f"label added: {label} (level{level})" for level, label in self.labels_added]
        lines += [f"label removed: {label} (level{level})" for level, label in self.labels_removed]
        return (*lines, "releases under these two taxonomies cannot be compared with each other.")


def diff_taxonomies(before: Taxonomy, after: Taxonomy) -> TaxonomyDiff:
    """How a taxonomy differs from another.

    Examples
    --------
    >>> a = Taxonomy.of({"clinic": "health", "gym": "leisure"}, version="1")
    >>> b = Taxonomy.of({"clinic": "errands", "gym": "leisure", "bar": "leisure"}, version="2")
    >>> diff_taxonomies(a, b).moved, diff_taxonomies(a, b).added
    ((('clinic', 1, 'health', 'errands'),), ('bar',))
    """
    paths = [{row[0]: row for row in taxonomy.rows} for taxonomy in (before, after)]
    both = sorted(set(paths[0]) & set(paths[1]))
    heights = before.height, after.height
    labels = [{(h, label) for h in range(1, t.height + 1) for label in t.labels(h)} for t in (before, after)]
    return TaxonomyDiff(
        before=(before.name, before.version, before.digest),
        after=(after.name, after.version, after.digest),
        added=tuple(sorted(set(paths[1]) - set(paths[0]))),
        removed=tuple(sorted(set(paths[0]) - set(paths[1]))),
        moved=tuple(
            (value, h, paths[0][value][h], paths[1][value][h])
            for value in both
            for h in range(1, min(heights) + 1)
            if paths[0][value][h] != paths[1][value][h]
        ),
        labels_added=tuple(sorted(labels[1] - labels[0])),
        labels_removed=tuple(sorted(labels[0] - labels[1])),
        levels=heights,
    )
