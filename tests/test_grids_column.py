"""Cells named by a column: any text, and H3 ids with all that H3 knows of them."""

from __future__ import annotations

import h3
import numpy as np
import pytest

from geodiv.errors import GridError
from geodiv.grids import ColumnGrid, H3Grid
from geodiv.grids.protocol import TextArray


def texts(*values: str | None) -> TextArray:
    return np.array([*values, ""], dtype=object)[:-1]


HELSINKI = h3.latlng_to_cell(60.17, 24.94, 8)
DISK = texts(*sorted(h3.grid_disk(HELSINKI, 2)))


def test_any_text_is_an_id_but_an_empty_one() -> None:
    got = ColumnGrid("cell").parse(texts("c-41", " c 58 ", "7", "007", "", "  ", None, "Café & Bar / 24h"))
    assert got.tolist() == ["c-41", "c 58", "7", "007", None, None, None, "Café & Bar / 24h"]


def test_one_h3_cell_has_one_id_however_it_is_written() -> None:
    number = str(h3.str_to_int(HELSINKI))
    grid = ColumnGrid("cell")
    assert set(grid.parse(texts(HELSINKI, HELSINKI.upper(), "0x" + HELSINKI, "0" + HELSINKI))) == {HELSINKI}
    assert grid.parse(texts(number)).tolist() == [number]
    assert ColumnGrid("cell", resolution=8).parse(texts(number)).tolist() == [HELSINKI]


def test_a_declared_resolution_refuses_other_ids() -> None:
    parent = h3.cell_to_parent(HELSINKI, 7)
    got = ColumnGrid("cell", resolution=8).parse(texts(HELSINKI, parent, "c-41", None))
    assert got.tolist() == [HELSINKI, None, None, None]
    with pytest.raises(GridError, match="0 to 15"):
        ColumnGrid("cell", resolution=16)


def test_h3_ids_have_what_the_h3_grid_has() -> None:
    grid, hexagons = ColumnGrid("cell"), H3Grid(8)
    cells = hexagons.keys(DISK)
    assert (grid.neighbours(DISK, 1) != hexagons.neighbours(cells, 1)).nnz == 0
    assert grid.area(DISK).tolist() == hexagons.area(cells).tolist()
    shapes = grid.geometry(DISK)
    assert shapes is not None
    assert (shapes == hexagons.geometry(cells)).all()


def test_h3_ids_as_numbers_have_it_too() -> None:
    numbers = texts(*(str(h3.str_to_int(cell)) for cell in DISK))
    assert ColumnGrid("cell").neighbours(numbers, 1).nnz == H3Grid(8).neighbours(H3Grid(8).keys(DISK), 1).nnz


@pytest.mark.parametrize(
    "other",
    [
        texts("c-41", "c-58"),
        texts(HELSINKI, "c-41"),
        texts(HELSINKI, h3.cell_to_parent(HELSINKI, 7)),
        texts(HELSINKI, str(h3.str_to_int(HELSINKI))),
    ],
    ids=["no H3", "some H3", "two resolutions", "one cell twice"],
)
def test_other_ids_have_no_place(other: TextArray) -> None:
    grid = ColumnGrid("cell")
    assert grid.geometry(other) is None
    assert grid.neighbours(other, 2).nnz == 0
    assert grid.neighbours(other, 2, np.array([1])).shape == (1, 2)
    assert np.isnan(grid.area(other)).all()


def test_coordinates_lead_nowhere() -> None:
    assert ColumnGrid("cell").locate(np.array([24.9]), np.array([60.2])).tolist() == [None]


def test_describe_says_the_resolution_only_when_it_is_known() -> None:
    assert ColumnGrid("cell").describe() == {"kind": "column", "column": "cell"}
    assert ColumnGrid("cell", resolution=8).describe()["resolution"] == 8
