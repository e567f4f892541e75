"""Diff: values and labels added, removed, moved."""

from __future__ import annotations

import geodiv as gd

OLD = gd.Taxonomy(
    (("bar", "food", "leisure"), ("cafe", "food", "leisure"), ("clinic", "health", "care")), "poi", "1"
)
NEW = gd.Taxonomy(
    (("bar", "night", "leisure"), ("clinic", "health", "leisure"), ("gym", "sport", "leisure")), "poi", "2"
)


def test_added_removed_and_moved() -> None:
    found = gd.diff_taxonomies(OLD, NEW)
    assert (found.added, found.removed) == (("gym",), ("cafe",))
    assert found.moved == (("bar", 1, "food", "night"), ("clinic", 2, "care", "leisure"))
    assert found.labels_added == ((1, "night"), (1, "sport"))
    assert found.labels_removed == ((1, "food"), (2, "care"))
    assert (found.before, found.after) == (("poi", "1", OLD.digest), ("poi", "2", NEW.digest))
    words = "\n".join(found.words())
    assert "version: 1 | 2" in words
    assert "moved: bar, level1: food -> night" in words
    assert "releases under these two taxonomies cannot be compared" in words


def test_a_new_name_alone_changes_nothing() -> None:
    found = gd.diff_taxonomies(OLD, gd.Taxonomy(OLD.rows, "other", "3"))
    assert found.same
    assert found.words()[-1] == "the two say the same of every value."


def test_another_number_of_levels() -> None:
    flat = gd.Taxonomy(tuple(row[:2] for row in OLD.rows), "poi")
    found = gd.diff_taxonomies(OLD, flat)
    assert found.levels == (2, 1)
    assert (found.moved, found.labels_removed) == ((), ((2, "care"), (2, "leisure")))
    assert not found.same


def test_levels_and_labels_are_told_in_words() -> None:
    flat = gd.Taxonomy(tuple(row[:2] for row in OLD.rows), "poi")
    words = gd.diff_taxonomies(OLD, flat).words()
    assert "levels: 2 | 1" in words
    assert "label removed: care (level2)" in words
    assert "version: 1 | -" in words
