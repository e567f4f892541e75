"""Random worlds with a sensitive tier, and with readers who have a map: geodiv finds what the definitions say."""

from __future__ import annotations

from hypothesis import given
from mapped_worlds import mapped, tiered
from strategies import World
from test_worlds import differences


@given(world=tiered())
def test_gates_on_the_tier_as_a_whole(world: World) -> None:
    assert differences(world) == []


@given(world=mapped())
def test_readers_with_a_map_of_places(world: World) -> None:
    assert differences(world) == []
