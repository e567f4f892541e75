"""CRS: read from what users write, named the same way every time."""

from __future__ import annotations

import pytest
from pyproj import CRS

from geodiv.errors import GridError
from geodiv.grids.crs import crs_name, metres_per_unit, read_crs


@pytest.mark.parametrize("text", ["EPSG:3035", "epsg:3035", 3035, "3035", CRS(3035), CRS(3035).to_wkt()])
def test_one_crs_has_one_name(text: object) -> None:
    assert crs_name(read_crs(text)) == "EPSG:3035"


def test_a_crs_of_no_registry_is_named_by_its_definition() -> None:
    own = "+proj=laea +lat_0=10 +lon_0=20 +datum=WGS84"
    name = crs_name(read_crs(own))
    assert name.startswith("PROJCRS")
    assert crs_name(read_crs(name)) == name
    assert read_crs(name) == CRS(own)


@pytest.mark.parametrize("text", ["", "nonsense", "EPSG:999999", None, 1.5])
def test_what_is_no_crs_is_an_error(text: object) -> None:
    with pytest.raises(GridError, match="expected the name of a coordinate reference system"):
        read_crs(text)


@pytest.mark.parametrize(
    ("code", "metres"),
    [
        ("EPSG:3035", 1),
        ("EPSG:2263", 1200 / 3937),  # US survey foot
        ("EPSG:2222", 0.3048),  # international foot
        ("EPSG:4326", 111_195),  # a degree of latitude on the mean sphere
    ],
)
def test_metres_per_unit(code: str, metres: float) -> None:
    assert metres_per_unit(read_crs(code)) == pytest.approx(metres, rel=1e-6)
