"""VisitSpec: which columns of a source are what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..attribute import Attribute
from ..errors import UsageError, expect
from ..grids.protocol import Grid
from .coordinates import Points


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitSpec:
    """Which columns of a source are what.

    Parameters
    ----------
    person : str
        Column of the person; its values are compared as text.
    grid : Grid
        Where the cells are. When it names a ``column``, that holds the cell ids and no coordinate is read.
    attributes : tuple of Attribute
    lon, lat : str, optional
        Columns of the coordinates, x and y in `crs`. Without them the geometry counts, else the usual names
        (lon, lng, longitude, long, x; lat, latitude, y) in any case.
    crs : str, optional
        CRS of the coordinates: EPSG:4326 for columns, what the layer declares for geometries. Given, it
        counts instead of what the layer declares, and the intake's notes say so.
    on_bad_rows : {"error", "skip"}
        Whether `check` raises when rows cannot be counted.
    layer : str, optional
        Layer of a file that has several.
    rejects : Path, optional
        A CSV file to write, with row number and reason of each row that is not counted. It implies "skip".
    points : {"only", "representative"}
        Whether geometries other than points are an error, or stand for a point inside them.
    """

    person: str
    grid: Grid
    attributes: tuple[Attribute, ...] = ()
    lon: str | None = None
    lat: str | None = None
    crs: str | None = None
    on_bad_rows: Literal["error", "skip"] = "error"
    layer: str | None = None
    rejects: Path | None = None
    points: Points = "only"

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", declared(self.attributes))
        if self.on_bad_rows not in ("error", "skip"):
            raise UsageError(f"on_bad_rows: expected 'error' or 'skip', got {self.on_bad_rows!r}.")
        if self.points not in ("only", "representative"):
            raise UsageError(f"points: expected 'only' or 'representative', got {self.points!r}.")
        if (self.lon is None) != (self.lat is None):
            raise UsageError(f"expected lon and lat together, got lon = {self.lon!r} and lat = {self.lat!r}.")
        if self.grid.column == self.person:
            raise UsageError(f"column {self.person!r}: expected the person or the cell id, got both.")
        taken = {self.person: "the person", self.grid.column: "the cell id"}
        for attribute in self.attributes:
            if attribute.column in taken:
                raise UsageError(
                    f"attribute {attribute.column!r}: this column is {taken[attribute.column]} already. "
                    "Name each column once."
                )
            taken[attribute.column] = "an attribute"

    @property
    def skips(self) -> bool:
        """Whether rows that cannot be counted are left out without an error."""
        return self.on_bad_rows == "skip" or self.rejects is not None


def declared(attributes: Iterable[Attribute]) -> tuple[Attribute, ...]:
    """The attributes, each looked at for being one.

    Raises
    ------
    UsageError
        They are no list, or hold something that is no Nominal, Ordinal or Numeric.
    """
    hint = 'Declare them in a list, such as [Nominal("column")].'
    if isinstance(attributes, str) or not isinstance(attributes, Iterable):
        raise UsageError(f"attributes: expected a list, got {type(attributes).__name__}. {hint}")
    listed = tuple(attributes)
    for attribute in listed:
        expect(attribute, Attribute, "attributes", hint)
    return listed
