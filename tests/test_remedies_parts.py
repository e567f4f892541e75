"""Parts of the remedies, asked directly and compared with plain loops over persons and cells."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain, combinations
from typing import Any

import h3
import numpy as np
import pandas as pd
import pytest
from crowds import CENTRE, FAR, ROW, tabulate, visits
from scipy import sparse

import geodiv as gd
from geodiv.remedies.grow import Grown, _hopeful, grow
from geodiv.remedies.moves import Moves, View, _ids, _joined, _parts, _pieces, connected
from geodiv.remedies.refine import _any, _disjoint, _safe, refine
from geodiv.remedies.release_level import release_levels
from geodiv.remedies.residual import Rest, protect_residual
from geodiv.scores import Judge

VALUES = ["bar", "clinic", "gym", "lab"]
CARE = ["clinic", "lab"]
Visits = dict[str, dict[str, set[str]]]
"""Persons of each value of each cell."""


def drawn(seed: int, cells: Iterable[str], most: int = 9) -> Visits:
    """Some of so many persons in each cell, who do one or two things; persons come to several cells."""
    rng = np.random.default_rng(seed)
    made: Visits = {}
    for cell in cells:
        taste = rng.dirichlet(np.full(len(VALUES), 0.5))
        here: dict[str, set[str]] = {}
        for person in rng.choice(14, size=rng.integers(1, most + 1), replace=False):
            for value in rng.choice(VALUES, size=rng.integers(1, 3), p=taste):
                here.setdefault(str(value), set()).add(f"p{person}")
        made[cell] = here
    return made


def table_of(visits: Visits, *attributes: Any) -> gd.Tabulation:
    rows = [(c, p, v) for c, here in visits.items() for v, persons in here.items() for p in persons]
    return tabulate(pd.DataFrame(rows, columns=["cell", "person", "activity"]), *attributes)


def sets_of(table: gd.Tabulation, sets: list[tuple[int, ...]]) -> sparse.csr_array:
    dense = np.zeros((len(sets), len(table.cells)))
    for row, cells in enumerate(sets):
        dense[row, list(cells)] = 1
    return sparse.csr_array(dense)


def effective(counts: list[int]) -> float:
    total = sum(counts)
    return math.exp(-sum(n / total * math.log(n / total) for n in counts if n))


def is_safe(visits: Visits, cells: list[str], k_min: int, **gates: Any) -> bool:
    """The rule of what may be left, word for word; `cells` are eligible."""
    if not cells:
        return True
    eligible = [cell for cell in visits if len(set().union(*visits[cell].values())) >= k_min]

    def persons(of: list[str], values: list[str] = VALUES) -> set[str]:
        return set().union(*(visits[cell].get(value, set()) for cell in of for value in values))

    if len(cells) < 2 or len(persons(cells)) < k_min:
        return False
    if (l_min := gates.get("l_min")) is not None:
        distinct = [len(persons(cells, [value])) for value in VALUES]
        pooled = [sum(len(visits[cell].get(value, ())) for cell in cells) for value in VALUES]
        if min(effective(distinct), effective(pooled)) < l_min - 1e-9:
            return False
    if (most := gates.get("incidence_max")) is not None:
        for value in CARE:
            limit = max(most, len(persons(eligible, [value])) / len(persons(eligible)))
            if len(persons(cells, [value])) / len(persons(cells)) > limit + 1e-9:
                return False
    if (most := gates.get("tier_incidence_max")) is not None:
        limit = max(most, len(persons(eligible, CARE)) / len(persons(eligible)))
        if len(persons(cells, CARE)) / len(persons(cells)) > limit + 1e-9:
            return False
    return True


GATES: list[dict[str, Any]] = [
    {},
    {"l_min": 2.2},
    {"incidence_max": 0.4},
    {"incidence_max": 0.1},
    {"tier_incidence_max": 0.5},
    {"tier_incidence_max": 0.1},
    {"l_min": 1.8, "incidence_max": 0.6, "tier_incidence_max": 0.8},
]


@pytest.mark.parametrize("gates", GATES, ids=lambda g: " ".join(g) or "k alone")
def test_what_may_be_left_by_plain_loops(gates: dict[str, Any]) -> None:
    told = set()
    for seed in range(6):
        visits = drawn(seed, [f"c{i}" for i in range(6)])
        coarse = gd.Taxonomy.of({"bar": "fun", "gym": "fun", "clinic": "care", "lab": "care"})
        table = table_of(visits, gd.Nominal("activity", coarse, sensitive=CARE))
        rest = Rest.of(Judge.of(table, gd.Policy(k_min=3, **gates)))
        eligible = np.flatnonzero(table.persons >= 3).tolist()
        sets = list(chain.from_iterable(combinations(eligible, n) for n in range(len(eligible) + 1)))
        found = rest.safe(sets_of(table, sets))
        plain = [is_safe(visits, [table.cells[i] for i in cells], 3, **gates) for cells in sets]
        assert found.tolist() == plain
        told |= set(plain[1:])
    assert told == {True, False}


def test_a_second_attribute_must_be_safe_too() -> None:
    """Two cells of two persons each, even in what they did; even in their bands, or all of one but one."""
    rows = [(cell, f"{cell}{i}", value) for cell in ("c1", "c2") for i, value in enumerate("abab")]
    frame = pd.DataFrame(rows, columns=["cell", "person", "activity"])
    for bands, safe in ((["low"] * 4 + ["high"] * 4, True), (["low"] * 7 + ["high"], False)):
        table = tabulate(frame.assign(band=bands), gd.Nominal("activity"), gd.Nominal("band"))
        rest = Rest.of(Judge.of(table, gd.Policy(k_min=2, l_min=1.9)))
        assert rest.safe(sets_of(table, [(0,), (0, 1), ()])).tolist() == [False, safe, True]


@pytest.mark.parametrize("gates", [{"l_min": 2.4}, {"l_min": 3.2}, {"incidence_max": 0.5}], ids=str)
def test_zones_are_given_up_for_the_rest_as_by_plain_loops(gates: dict[str, Any]) -> None:
    """Thirty zones of one or two cells, some of cells below k alone, and two cells left out that were clinics only."""
    places = []
    for seed in range(8):
        visits = drawn(seed, [f"c{i:02d}" for i in range(40)], most=7)
        if seed % 2:
            visits = {c: {v: {c + p for p in who} for v, who in here.items()} for c, here in visits.items()}
        rng = np.random.default_rng(seed)
        dark = rng.choice(40, size=2, replace=False).tolist()
        visits |= {f"c{i:02d}": {"clinic": {f"{i}-{j}" for j in range(8 + i % 3)}} for i in dark}
        table = table_of(visits, gd.Nominal("activity", sensitive=CARE))
        judge = Judge.of(table, gd.Policy(k_min=3, **gates))
        free = [i for i in rng.permutation(40).tolist() if i not in dark]
        zones = [tuple(sorted(free[i : i + 2])) for i in range(0, 12, 2)] + [(i,) for i in free[12:]]
        zones.sort()
        plan = table.start().merge(sets_of(table, [z for z in zones if len(z) > 1]))
        plan = plan.suppress(np.array(dark))
        counts = table.count(sets_of(table, zones))
        first = np.array([zone[0] for zone in zones])
        found = protect_residual(Rest.of(judge), plan, first, counts)

        def safe(cells: Iterable[int], table: Any = table, visits: Visits = visits) -> bool:
            eligible = [table.cells[i] for i in cells if table.persons[i] >= 3]
            return is_safe(visits, eligible, 3, **gates)

        left, shown, lost = list(dark), list(zones), []
        by_persons = dict(zip(zones, counts.persons.tolist(), strict=True))
        while not safe(left):
            useful = [z for z in shown if any(table.persons[i] >= 3 for i in z)]
            useful.sort(key=lambda zone: (by_persons[zone], zone[0]))
            if not useful:
                lost = list(zones)
                break
            one = next((zone for zone in useful if safe([*left, *zone])), useful[0])
            places.append(useful.index(one))
            left += one
            shown.remove(one)
            lost.append(one)
        expected = {*dark, *(i for zone in lost for i in zone)}
        assert set(np.flatnonzero(found.suppressed)) == expected
    assert len(places) >= 8
    assert max(places) > 8


# --- one level for the whole release ----------------------------------------------------------------------------


def test_where_nothing_passes_at_any_level_the_starting_one_is_taken() -> None:
    """Level 2 has one label, and is none to publish by; before its starting level an attribute is not published."""
    rows = (("a", "x", "all"), ("b", "x", "all"), ("c", "y", "all"))
    counts = {"c1": {"a": 9}, "c2": {"c": 9}, "c3": {"b": 1}}
    for start in (0, 1):
        table = tabulate(counts, gd.Nominal("activity", gd.Taxonomy(rows), level=start))
        assert release_levels(Judge.of(table, gd.Policy(k_min=4, share_max=0.1))) == (start,)
    both = tabulate(counts, gd.Nominal("activity", gd.Taxonomy(rows)))
    assert release_levels(Judge.of(both, gd.Policy(k_min=4))) == (0,)


# --- cells that hang together -----------------------------------------------------------------------------------

DISK = sorted(h3.grid_disk(CENTRE, 2))


def hang(cells: Iterable[str]) -> bool:
    todo = set(cells)
    edge = [todo.pop()] if todo else []
    empty = not edge
    while edge:
        near = set(h3.grid_ring(edge.pop(), 1)) & todo
        todo -= near
        edge += near
    return not todo and not empty


def test_a_move_touches_the_cells_of_all_its_zones() -> None:
    left, right = (sparse.csr_array([row]) for row in ([1.0, 1, 0, 0], [0.0, 0, 0, 1]))
    levels = np.zeros((1, 1), dtype=np.int64)
    assert Moves((left, right), (levels, levels)).cells.todense().tolist() == [[1, 1, 0, 1]]
    assert Moves((left,), (levels,)).cells.todense().tolist() == [[1, 1, 0, 0]]


def test_what_is_0_after_adding_or_subtracting_sets_is_not_stored() -> None:
    """The moves rely on it: what a set stores are its cells."""
    whole, part = sparse.csr_array([[1.0, 1, 1, 0]]), sparse.csr_array([[0.0, 1, 0, 0]])
    assert (whole - part).indices.tolist() == [0, 2]
    assert (whole + -1 * part).indices.tolist() == [0, 2]


def test_sets_of_cells_hang_together_as_by_a_walk() -> None:
    table = tabulate({cell: {"a": 4} for cell in [*DISK, FAR]})
    rng = np.random.default_rng(5)
    sets = [(), tuple(range(len(table.cells)))]
    for size in (1, 2, 3, 4, 5, 6, 9, 14):
        sets += [tuple(sorted(rng.choice(len(table.cells), size, replace=False))) for _ in range(25)]
    found = connected(sets_of(table, sets), table.adjacency)
    plain = [hang(table.cells[list(cells)]) for cells in sets]
    assert found.tolist() == plain
    assert set(plain) == {True, False}
    assert connected(sets_of(table, [(), ()]), table.adjacency).tolist() == [False, False]


def test_ids_of_sets_of_several_sizes() -> None:
    table = table_of(drawn(1, [f"c{i}" for i in range(4)]))
    assert _ids(sets_of(table, [(2, 3), (), (0, 1, 3)]), 3).tolist() == [[2, 3, -1], [-1] * 3, [0, 1, 3]]


def test_a_set_of_no_cells_hangs_together_with_nothing() -> None:
    table = table_of(drawn(1, ["c0", "c1"]))
    assert connected(sets_of(table, [(), (1,)]), table.adjacency).tolist() == [False, True]
    assert connected(sets_of(table, [(), (1,), (), (0,)]), table.adjacency).tolist() == [
        False,
        True,
        False,
        True,
    ]


def view_of(zones: list[tuple[int, ...]], dark: list[int]) -> tuple[gd.Tabulation, View]:
    table = tabulate({cell: {"a": 4, "b": 4} for cell in DISK})
    plan = table.start().merge(sets_of(table, [z for z in zones if len(z) > 1])).suppress(np.array(dark))
    return table, View.of(Judge.of(table, gd.Policy(k_min=4)), plan)


def partition(seed: int) -> tuple[list[tuple[int, ...]], list[int]]:
    """Zones of one to seven cells that hang together, and some cells that are not published."""
    rng = np.random.default_rng(seed)
    dark = sorted(rng.choice(len(DISK), 5, replace=False).tolist())
    free, zones = [i for i in range(len(DISK)) if i not in dark], []
    while free:
        zone, size = [free.pop(0)], rng.integers(1, 8)
        while len(zone) < size:
            near = [i for i in free if any(DISK[i] in h3.grid_ring(DISK[j], 1) for j in zone)]
            if not near:
                break
            zone.append(near[0])
            free.remove(near[0])
        zones.append(tuple(sorted(zone)))
    return sorted(zones), dark


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_zones_as_by_trying_all(seed: int) -> None:
    """At most three cells and at most half the zone; of two halves the one that holds the smallest id."""
    zones, dark = partition(seed)
    _, view = view_of(zones, dark)
    zone, parts = _parts(view, np.ones(len(DISK), bool))
    found = sorted(
        zip(zone.tolist(), [tuple(row.nonzero()[0].tolist()) for row in parts.todense()], strict=True)
    )
    plain = [
        (z, part)
        for z, cells in enumerate(zones)
        for size in (1, 2, 3)
        for part in combinations(cells, size)
        if 2 * size < len(cells) or (2 * size == len(cells) and cells[0] in part)
        if hang(DISK[i] for i in part)
    ]
    assert found == sorted(plain)
    fresh = np.zeros(len(DISK), bool)
    assert _parts(view, fresh)[1].shape[0] == 0


@pytest.mark.parametrize("seed", range(4))
def test_pieces_and_the_zones_beside_them_as_by_trying_all(seed: int) -> None:
    zones, dark = partition(seed)
    table, view = view_of(zones, dark)
    singles = [(i,) for i in dark]
    pairs = [pair for pair in combinations(dark, 2) if hang(DISK[i] for i in pair)]
    for size, plain in ((1, singles), (2, pairs)):
        pieces = _pieces(view, size)
        assert [tuple(row.nonzero()[0].tolist()) for row in pieces.todense()] == plain
        for joined in (0, 1, 2):
            piece, with_ = _joined(pieces, view.members, table.adjacency, joined)
            found = sorted((plain[p], *z) for p, z in zip(piece.tolist(), with_.tolist(), strict=True))
            every = [
                (part, *taken)
                for part in plain
                for taken in combinations(range(len(zones)), joined)
                if hang(DISK[i] for i in chain(part, *(zones[z] for z in taken)))
            ]
            assert found == sorted(every)


# --- gathering --------------------------------------------------------------------------------------------------


def test_what_became_of_seeds() -> None:
    grown = Grown(np.array([[3, 4, -1], [0, 1, 2], [5, -1, -1]]), np.array([[0, 1], [-1, 0], [-1, -1]]))
    assert grown.passes.tolist() == [True, False, False]
    free = np.array([True, True, False, True, True, False, False])
    assert grown.within(free).tolist() == [True, False, False]
    assert grown.take(np.array([2, 0])).path.tolist() == [[5, -1, -1], [3, 4, -1]]
    put = grown.put(np.array([1]), Grown(np.array([[6, -1, -1]]), np.array([[2, 2]])))
    assert put.path.tolist() == [[3, 4, -1], [6, -1, -1], [5, -1, -1]]
    assert put.levels.tolist() == [[0, 1], [2, 2], [-1, -1]]
    assert grown.path.tolist()[1] == [0, 1, 2]


@pytest.mark.parametrize(
    ("members", "seed", "gates"),
    [
        (2, 0, {}),
        (3, 1, {"l_min": 2.3}),
        (3, 19, {"l_min": 2.3}),
        (3, 31, {"l_min": 2.3}),
        (4, 9, {"l_min": 2.3}),
        (4, 33, {"l_min": 2.3}),
        (5, 0, {"l_min": 2.3}),
        (5, 2, {"l_min": 3, "share_max": 0.6}),
    ],
)
def test_many_grow_at_once_as_one_after_the_other(members: int, seed: int, gates: dict[str, Any]) -> None:
    """Most persons first, the smallest id of equals; each takes the free neighbour that adds most persons.

    In these cities seeds wait for earlier ones, and some of them for cells that those could take only anew.
    """
    visits = drawn(seed, sorted(h3.grid_disk(CENTRE, 3)), most=5)
    table = table_of(visits)
    judge = Judge.of(table, gd.Policy(k_min=9, max_members=members, **gates))
    published = np.zeros(len(table.cells), bool)
    if seed == 2:
        published[::6] = True
    with np.errstate(all="raise"):
        found = grow(judge, table.start(), published)

    def persons(cells: list[int]) -> set[str]:
        return set().union(*(p for i in cells for p in visits[table.cells[i]].values()))

    free = [not shown for shown in published]
    zones: dict[tuple[int, ...], list[int]] = {}
    for start in sorted(range(len(free)), key=lambda i: (-len(persons([i])), i)):
        path = [start]
        while free[start] and len(path) < members:
            near = {j for i in path for j in table.adjacency[[i]].indices.tolist()}
            near = {j for j in near - set(path) if free[j]}
            if not near:
                break
            path.append(min(near, key=lambda j: (-len(persons([*path, j])), j)))
            standing = judge.standing(table.count(sets_of(table, [tuple(path)])))
            if standing.clears[0]:
                zones[tuple(sorted(path))] = standing.lowest[0].tolist()
                for i in path:
                    free[i] = False
                break
    told = {
        tuple(np.flatnonzero(found.zone == zone).tolist()): found.level[zone].tolist()
        for zone in found.zones
        if (found.zone == zone).sum() > 1
    }
    assert told == zones
    assert zones


def test_only_free_cells_that_can_reach_k_with_free_neighbours_are_seeds() -> None:
    """The published fourth cell of the row parts the three before it, 6 persons, from the two after it, 4."""
    table = tabulate({cell: {"a": 2} for cell in ROW[:6]} | {FAR: {"a": 9}})
    free = table.cells != ROW[3]
    found = _hopeful(Judge.of(table, gd.Policy(k_min=6)), free)
    assert set(table.cells[found]) == set(ROW[:3])


def test_two_cells_by_themselves_gather() -> None:
    table = tabulate({ROW[0]: {"a": 3}, ROW[1]: {"b": 3}, FAR: {"a": 5}})
    found = grow(Judge.of(table, gd.Policy(k_min=6, l_min=2)), table.start(), np.zeros(3, bool))
    together = np.flatnonzero(np.isin(table.cells, ROW[:2]))
    assert found.zone[together].tolist() == [together[0]] * 2


def test_where_no_cell_has_k_persons_nothing_is_left_to_tell() -> None:
    table = tabulate({"c1": {"a": 1}, "c2": {"a": 2}}, gd.Nominal("activity", sensitive=["a"]))
    rest = Rest.of(Judge.of(table, gd.Policy(k_min=3, incidence_max=0.8, tier_incidence_max=0.8)))
    with np.errstate(all="raise"):
        assert rest.safe(sets_of(table, [()])).tolist() == [True]


def test_one_person_in_two_cells_is_one_of_one() -> None:
    """Both cells are the same person's, who was at the clinic: certain, however small the crowd."""
    visits: Visits = {
        "c1": {"clinic": {"p"}},
        "c2": {"clinic": {"p"}},
        "c3": {"bar": {"q", "r"}, "lab": {"s"}},
    }
    table = table_of(visits, gd.Nominal("activity", sensitive=CARE))
    for gates in ({"incidence_max": 0.8}, {"tier_incidence_max": 0.8}):
        rest = Rest.of(Judge.of(table, gd.Policy(k_min=1, **gates)))  # type: ignore[arg-type]
        assert rest.safe(sets_of(table, [(0, 1), (0, 2)])).tolist() == [False, True]


# --- moves that are taken together ------------------------------------------------------------------------------


def test_moves_that_touch_a_cell_of_an_earlier_one_wait() -> None:
    cells = sparse.csr_array(np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1.0]]))
    assert _disjoint(cells, np.arange(4)).tolist() == [0, 2, 3]
    assert _disjoint(cells, np.array([1, 3])).tolist() == [1, 3]
    assert _disjoint(cells, np.array([1, 2])).tolist() == [1]
    assert _disjoint(cells, np.arange(0)).tolist() == []
    assert _any(cells, np.array([0, 3])).tolist() == [True, True, False, False, True]
    assert not _any(cells, np.arange(0)).any()


def test_of_moves_that_the_rest_forbids_together_what_can_be_had_of_each_half() -> None:
    told = set()
    for seed in range(12):
        visits = drawn(seed, [f"c{i}" for i in range(8)], most=7)
        table = table_of(visits, gd.Nominal("activity"))
        rest = Rest.of(Judge.of(table, gd.Policy(k_min=2, l_min=2.6)))
        dark = table.persons >= 2
        moves = [(i,) for i in np.flatnonzero(dark)[:-2].tolist()]

        def plain(left: list[int], rows: list[int], moves: Any = moves, visits: Visits = visits) -> list[int]:
            after = [i for i in left if (i,) not in [moves[row] for row in rows]]
            if is_safe(visits, [f"c{i}" for i in after], 2, l_min=2.6):
                return rows
            if len(rows) == 1:
                return []
            first = plain(left, rows[: len(rows) // 2])
            gone = [moves[row][0] for row in first]
            return first + plain([i for i in left if i not in gone], rows[len(rows) // 2 :])

        expected = plain(np.flatnonzero(dark).tolist(), list(range(len(moves))))
        assert _safe(rest, dark, sets_of(table, moves), np.arange(len(moves))).tolist() == expected
        told.add("all" if len(expected) == len(moves) else "some" if expected else "none")
    assert {"all", "some"} <= told


def test_what_the_rest_forbade_is_tried_again_after_every_change() -> None:
    """The lone cell goes last: without it, all of the rest are in `s`, until the first two cells are published.

    The same ten persons are in all four cells of the rest; who is in `s` in the second is not in the fourth.
    """
    crowd, half = [f"p{i}" for i in range(10)], [f"p{i}" for i in range(5)]
    others = [p for p in crowd if p not in half]
    one, two, three, four = ROW[0], ROW[1], ROW[4], ROW[5]
    made: Visits = {
        one: {"a": set(crowd)},
        two: {"b": set(crowd), "s": set(half)},
        three: {"a": set(crowd)},
        four: {"b": set(crowd), "s": set(others)},
        FAR: {"a": {f"q{i}" for i in range(10)}, "b": {f"r{i}" for i in range(10)}},
    }
    table = table_of(made, gd.Nominal("activity", sensitive=["s"]))
    judge = Judge.of(table, gd.Policy(k_min=10, l_min=2, incidence_max=0.5, max_members=2))
    rest = Rest.of(judge)
    at = {cell: int(np.flatnonzero(table.cells == cell)[0]) for cell in made}
    alone = (at[one], at[two], at[three], at[four])
    assert rest.safe(sets_of(table, [alone, (at[FAR], *alone[2:]), alone[2:]])).tolist() == [
        False,
        True,
        True,
    ]
    found = refine(judge, table.start().suppress(np.arange(5)), rest)
    assert not found.suppressed.any()
    assert len(found.zones) == 3


def test_one_person_everywhere_is_no_news_in_the_rest() -> None:
    """Whom everybody knows to be the only one, and to have done it, the rest does not tell more about."""
    table = tabulate(
        visits({cell: {"a": 1} for cell in ROW[:3]}, shared=True), gd.Nominal("activity", sensitive=["a"])
    )
    rest = Rest.of(Judge.of(table, gd.Policy(k_min=1, tier_incidence_max=0.4)))
    assert rest.safe(sets_of(table, [(0, 1), (0,), ()])).tolist() == [True, False, True]
