"""Squares: half-open, from the origin of the CRS, with exact ids."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from geodiv.errors import GridError
from geodiv.grids import SquareGrid
from geodiv.grids.protocol import FloatArray, TextArray

SIZES = ["0.000001", "0.001", "0.1", "0.25", "0.3", "1", "7", "333.33", "500", "1000", "100000"]
sizes = st.sampled_from(SIZES)


def texts(*values: str | None) -> TextArray:
    return np.array([*values, ""], dtype=object)[:-1]


def ids(grid: SquareGrid, *points: tuple[float, float]) -> list[str]:
    x, y = np.array(points, dtype=float).T
    return grid.ids(grid.locate(x, y)).tolist()


def bounds(grid: SquareGrid, x: FloatArray, y: FloatArray) -> FloatArray:
    return shapely.bounds(grid.geometry(grid.locate(x, y)))


# --- which squares ------------------------------------------------------------------------------------------


def test_ids_are_those_of_the_regulation() -> None:
    grid = SquareGrid(500, "EPSG:3035")
    assert ids(grid, (4695123, 2599999.9)) == ["CRS3035RES500mN2599500E4695000"]
    assert ids(SquareGrid(1000, "EPSG:3035"), (4321000, 3210000)) == ["CRS3035RES1000mN3210000E4321000"]
    assert ids(SquareGrid(100_000.0, "EPSG:3035"), (4321000, 3210000)) == [
        "CRS3035RES100000mN3200000E4300000"
    ]


def test_ids_south_and_west_of_the_origin_and_of_decimal_sizes() -> None:
    assert ids(SquareGrid(500, "EPSG:3035"), (-1, -500), (0, -1000.5)) == [
        "CRS3035RES500mN-500E-500",
        "CRS3035RES500mN-1500E0",
    ]
    assert ids(SquareGrid(0.1, "EPSG:3035"), (0.3, -0.15), (1, 0)) == [
        "CRS3035RES0.1mN-0.2E0.3",
        "CRS3035RES0.1mN0E1",
    ]
    assert ids(SquareGrid(1e-6, "EPSG:3035"), (2e-6, 0)) == ["CRS3035RES0.000001mN0E0.000002"]


def test_ids_of_other_registries_and_of_none() -> None:
    assert ids(SquareGrid(500, "ESRI:102001"), (1, 1)) == ["CRSESRI102001RES500mN0E0"]
    assert ids(SquareGrid(500, "+proj=laea +lat_0=10 +lon_0=20"), (1, 1)) == ["CRScustomRES500mN0E0"]


def test_points_on_edges_lie_in_the_square_that_starts_there() -> None:
    grid = SquareGrid(500, "EPSG:3035")
    assert ids(grid, (1000, 1000), (1000, 1250), (1500, 1500), (1499.999, 999.999)) == [
        "CRS3035RES500mN1000E1000",
        "CRS3035RES500mN1000E1000",
        "CRS3035RES500mN1500E1500",
        "CRS3035RES500mN500E1000",
    ]


def test_the_floating_point_trap() -> None:
    assert np.floor(0.3 / 0.1) == 2
    grid = SquareGrid(0.1, "EPSG:3035")
    steps = np.arange(-1000, 1001)
    got = bounds(grid, steps / 10, np.zeros(len(steps)))
    assert (got[:, 0] == steps / 10).all()
    assert ids(grid, (0.3, 0.7)) == ["CRS3035RES0.1mN0.7E0.3"]


@given(
    sizes, st.lists(st.tuples(st.floats(-900, 900), st.floats(-900, 900)), min_size=1, max_size=30), st.data()
)
def test_each_point_is_in_its_square_and_in_no_other(
    size: str, points: list[tuple[float, float]], data: st.DataObject
) -> None:
    grid = SquareGrid(float(size), "EPSG:3035")
    corners = data.draw(st.lists(st.tuples(*[st.integers(-900, 900)] * 2), max_size=10))
    on_edges = [(float(i * Fraction(size)), float(j * Fraction(size))) for i, j in corners]
    x, y = np.array(points + on_edges).T
    left, bottom, right, top = bounds(grid, x, y).T
    assert ((left <= x) & (x < right) & (bottom <= y) & (y < top)).all()
    keys = np.unique(grid.locate(x, y))
    squares = shapely.bounds(grid.geometry(keys))
    inside = (squares[:, 0] <= x[:, None]) & (x[:, None] < squares[:, 2])
    inside &= (squares[:, 1] <= y[:, None]) & (y[:, None] < squares[:, 3])
    assert (inside.sum(axis=1) == 1).all()
    assert inside.sum() == len(x)


@given(sizes, st.integers(-10_000, 10_000), st.integers(-10_000, 10_000))
def test_edges_are_the_numbers_nearest_to_their_decimals(size: str, column: int, row: int) -> None:
    grid = SquareGrid(float(size), "EPSG:3035")
    corner = [float(column * Fraction(size)), float(row * Fraction(size))]
    key = grid.locate(*np.array(corner)[:, None])
    assert shapely.bounds(grid.geometry(key))[0, :2].tolist() == corner
    text = grid.ids(key)[0]
    north, _, east = text.removeprefix(f"CRS3035RES{size}mN").partition("E")
    assert (Fraction(east), Fraction(north)) == (column * Fraction(size), row * Fraction(size))
    assert grid.keys(texts(text)) == key


def test_squares_do_not_depend_on_the_data() -> None:
    grid = SquareGrid(250, "EPSG:3035")
    rng = np.random.default_rng(5)
    x, y = rng.uniform(0, 1e4, (2, 500))
    some = rng.permutation(500)[:200]
    assert (grid.locate(x, y)[some] == grid.locate(x[some], y[some])).all()


def test_a_coordinate_beyond_the_numbered_squares_is_an_error() -> None:
    with pytest.raises(GridError, match="larger squares"):
        SquareGrid(0.001, "EPSG:3035").locate(np.array([4.3e6]), np.array([3.2e6]))
    SquareGrid(0.01, "EPSG:3035").locate(np.array([4.3e6]), np.array([-3.2e6]))


# --- ids back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "CRS3035RES500mN2599500E4695001",
        "CRS3035RES1000mN2599000E4695000",
        "CRS3067RES500mN2599500E4695000",
        "CRS3035RES500mN2599500",
        "CRS3035RES500mN2599500E4695000 x",
        "CRS3035RES500mN1e3E500",
        "CRS3035RES500mN0E9999999999999500",
        "xCRS3035RES500mN2599500E4695000",
    ],
)
def test_what_is_no_id_of_this_grid(text: str | None) -> None:
    grid = SquareGrid(500, "EPSG:3035")
    good = "CRS3035RES500mN2599500E4695000"
    keys = grid.parse(texts(text, f" {good}"))
    assert keys[0] == -1
    assert grid.ids(keys[1:]).tolist() == [good]


# --- neighbours ---------------------------------------------------------------------------------------------

places = st.sets(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=1, max_size=40)


@given(places, st.integers(0, 15), st.integers(0, 2**32 - 1))
def test_neighbours_are_the_squares_around(cells: set[tuple[int, int]], order: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = rng.permutation(np.array(sorted(cells)))
    grid = SquareGrid(500, "EPSG:3035")
    keys = grid.locate(*(500.0 * at.T + 250))
    centres = rng.integers(0, len(at), 4)
    got = grid.neighbours(keys, order, centres).toarray()
    for row, c in zip(got, centres, strict=True):
        expected = [float(i != c and max(abs(at[i] - at[c])) <= order) for i in range(len(at))]
        assert row.tolist() == expected


def test_a_square_far_off_keeps_its_empty_row() -> None:
    grid = SquareGrid(500, "EPSG:3035")
    keys = grid.locate(np.array([250.0, 750.0, 250_000.0]), np.array([250.0, 750.0, 250.0]))
    assert grid.neighbours(keys, 1).sum(axis=1).tolist() == [1, 1, 0]
    assert grid.neighbours(keys, 10**9).sum(axis=1).tolist() == [2, 2, 2]


def test_squares_at_the_end_of_the_numbers_have_no_neighbour_at_the_other_end() -> None:
    grid = SquareGrid(1, "EPSG:3035")
    end = float((1 << 30) - 2)
    keys = grid.locate(np.array([end, -end, -end]), np.array([0.0, 0.0, 1.0]))
    assert grid.neighbours(keys, 2).sum(axis=1).tolist() == [0, 1, 1]


def test_area_is_that_of_the_plane() -> None:
    grid = SquareGrid(250, "EPSG:3035")
    keys = grid.locate(np.array([0.0, 1e6]), np.array([0.0, 1e6]))
    assert grid.area(keys).tolist() == [62_500, 62_500]
    assert shapely.area(grid.geometry(keys)).tolist() == [62_500, 62_500]


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, -500, float("nan"), float("inf"), True, "500", None])
def test_a_size_is_a_number_above_0(size: object) -> None:
    with pytest.raises(GridError, match="metres above 0"):
        SquareGrid(size, "EPSG:3035")  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1 / 3, 1e-7, 500.0000001])
def test_a_size_has_few_decimals(size: float) -> None:
    with pytest.raises(GridError, match="at most 6 decimals"):
        SquareGrid(size, "EPSG:3035")


def test_a_size_may_be_a_numpy_number() -> None:
    assert SquareGrid(np.float64(250), "EPSG:3035").describe()["size"] == 250
    assert SquareGrid(np.int32(250), "EPSG:3035") == SquareGrid(250, "EPSG:3035")


@pytest.mark.parametrize(
    ("crs", "message"),
    [
        ("EPSG:4326", "not projected and has the unit degree"),
        ("EPSG:4978", "not projected"),
        ("EPSG:2263", "US survey foot.*EPSG:32618"),
        ("EPSG:2222", "unit foot"),
        ("nonsense", "coordinate reference system"),
    ],
)
def test_a_crs_is_projected_and_in_metres(crs: str, message: str) -> None:
    with pytest.raises(GridError, match=message):
        SquareGrid(500, crs)


@pytest.mark.parametrize("crs", ["EPSG:3857", "EPSG:3395", "ESRI:102100"])
def test_mercator_is_accepted_with_a_warning(crs: str) -> None:
    with pytest.warns(UserWarning, match="cover less ground") as caught:
        SquareGrid(500, crs)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("crs", ["EPSG:3035", "EPSG:32633", "EPSG:21781", "EPSG:3067", "EPSG:2193"])
def test_metric_crs_raise_no_warning(crs: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SquareGrid(500, crs).crs == crs
