"""Random worlds with gates on the sensitive tier, and with a reader who has a map of places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from oracles import MISSING, text
from strategies import Subject, World, worlds

if TYPE_CHECKING:
    import geodiv.policy

TIER_GATES = {"tier_max": [0.6, 0.5, 0.4, 0.8, 0.2, 1], "tier_incidence_max": [0.8, 0.6, 0.9, 0.5, 0.3, 1]}
Inventory = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class MappedWorld(World):
    """A world in which readers know how many places of each value stand in each cell, for some attributes."""

    places: Mapping[str, Inventory] = field(default_factory=dict)

    def policy(self) -> geodiv.policy.Policy:
        """The policy with the maps."""
        from geodiv.places import Places

        maps = tuple(Places(column, inventory) for column, inventory in self.places.items())
        return replace(super().policy(), places=maps)

    def oracle_input(self) -> tuple[Any, Any, Any, dict[str, Any]]:
        """The arguments of ``oracles.tabulate``, the maps in the policy."""
        visits, near, declared, policy = super().oracle_input()
        return visits, near, declared, {**policy, "places": self.places}


def values_of(world: World, i: int) -> list[str]:
    """The values of an attribute in label order, without the missing one."""
    subject = world.subjects[i]
    occurring = {text(subject.value(row[2][i])) for row in world.visits} - {
        *subject.declared.missing,
        MISSING,
    }
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


@st.composite
def mapped(draw: st.DrawFn) -> MappedWorld:
    """A world with a tier or without one, and a map of places for each attribute that has coarser labels."""
    world = draw(st.one_of(worlds(), tiered()))
    cells = sorted({visit[0] for visit in world.visits})
    places: dict[str, Inventory] = {}
    for i, subject in enumerate(world.subjects):
        values = values_of(world, i)
        if not subject.declared.taxonomy or not values:
            continue
        rng = np.random.default_rng(draw(st.integers(0, 9999)))
        dense = draw(st.sampled_from([0.3, 0.1, 0.6, 1.0]))
        n = rng.integers(1, 4, size=(len(cells), len(values))) * (
            rng.random((len(cells), len(values))) < dense
        )
        places[subject.declared.column] = {
            cell: {v: int(x) for v, x in zip(values, row, strict=True)}
            for cell, row in zip(cells, n, strict=True)
        }
    names = {f: getattr(world, f) for f in World.__dataclass_fields__}
    return MappedWorld(**names, places=places)
