"""Random worlds with gates on the sensitive tier, and with a reader who has a map of places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st
from oracles import MISSING, text
from strategies import Subject, World, worlds

TIER_GATES = {"tier_max": [0.6, 0.5, 0.4, 0.8, 0.2, 1], "tier_incidence_max": [0.8, 0.6, 0.9, 0.5, 0.3, 1]}
Inventory = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class MappedWorld(World):
    """A world in which readers know how many places of each value stand in each cell, for some attributes."""

    places: Mapping[str, Inventory] = field(default_factory=dict)


def values_of(world: World, i: int) -> list[str]:
    """The values of an attribute in label order, without the missing one."""
    subject = world.subjects[i]
    occurring = {text(subject.value(row[2][i])) for row in world.visits} - {*subject.declared.missing, MISSING}
    return [value for value in subject.labels(occurring).levels[0] if value != MISSING]


@st.composite
def tier_gates(draw: st.DrawFn) -> dict[str, float]:
    """One or both gates on the tier."""
    names = draw(st.sampled_from([["tier_max"], ["tier_incidence_max"], list(TIER_GATES)]))
    return {name: draw(st.sampled_from(TIER_GATES[name])) for name in names}


@st.composite
def tiered(draw: st.DrawFn) -> World:
    """A world whose first attribute names sensitive values, with gates on them of its own or for all."""
    world = draw(worlds())
    subjects: list[Subject] = []
    for i, subject in enumerate(world.subjects):
        declared = subject.declared
        if i == 0 and declared.sensitive is None:
            chosen = draw(st.sets(st.sampled_from([*values_of(world, i), MISSING]), min_size=1, max_size=3))
            declared = replace(declared, sensitive=tuple(sorted(chosen)))
        if declared.sensitive is not None and draw(st.booleans()):
            declared = replace(declared, gates={**declared.gates, **draw(tier_gates())})
        subjects.append(replace(subject, declared=declared))
    gates = dict(world.gates)
    if all(subject.declared.sensitive is not None for subject in subjects) and draw(st.booleans()):
        gates |= draw(tier_gates())
    return replace(world, subjects=tuple(subjects), gates=gates)
