"""Random worlds with a sensitive tier: geodiv finds what the definitions say."""

from __future__ import annotations

from hypothesis import given
from mapped_worlds import tiered
from strategies import World
from test_worlds import differences


@given(world=tiered())
def test_gates_on_the_tier_as_a_whole(world: World) -> None:
    assert differences(world) == []
