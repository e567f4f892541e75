"""Coordinates of the visits as arrays: numbers from columns, points from geometries, one CRS to another.

Nothing here makes a Python object per row, and no geometry is ever reprojected: only coordinate arrays are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError

from ..errors import SourceError, listed

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Points = Literal["only", "representative"]

WGS84 = CRS.from_epsg(4326)
NUMBER = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
NOWHERE = np.bool_(False)
NOTHING = ("", "na", "n/a", "nan", "null", "none", "<na>")
"""Texts of a coordinate that say there is none, compared without case."""


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A coordinate column as numbers.

    Parameters
    ----------
    values : (rows,) float64
        nan where there is none.
    wrong : (rows,) bool, or False for nowhere
        Where the text is no number.
    commas : (rows,) bool, or False for nowhere
        Where such a text would be a number with a decimal point for its comma.
    """

    values: FloatArray
    wrong: BoolArray | np.bool_ = NOWHERE
    commas: BoolArray | np.bool_ = NOWHERE

    @property
    def nothing(self) -> BoolArray:
        """(rows,) bool: neither a number nor a text."""
        return np.isnan(self.values) & ~self.wrong


def numbers(column: pa.ChunkedArray, name: str) -> Numbers:
    """The numbers of a column of numbers or texts; an error for any other type."""
    kind = column.type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(value):
        return Numbers(np.full(len(column), np.nan))
    if str(value) in ("string", "large_string", "string_view"):
        return _parsed(column.cast(pa.large_string()))
    if pa.types.is_integer(value) or pa.types.is_floating(value) or pa.types.is_decimal(value):
        return Numbers(_floats(column.cast(pa.float64(), safe=False)))
    raise SourceError(
        f"expected numbers in column {name!r}, got {kind}. Name the columns with lon= and lat=."
    )


def _floats(column: pa.ChunkedArray | pa.Array) -> FloatArray:
    """(rows,) float64, nan for null."""
    return np.asarray(
        column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    )


def _parsed(column: pa.ChunkedArray) -> Numbers:
    try:
        return Numbers(_floats(column.cast(pa.float64())))
    except pa.ArrowInvalid:
        trimmed = pc.utf8_trim_whitespace(column)
    fits = pc.match_substring_regex(trimmed, NUMBER)
    signless = pc.replace_substring_regex(trimmed, r"^[+]", "")
    values = _floats(pc.if_else(fits, signless, pa.scalar(None, pa.large_string())).cast(pa.float64()))
    endless = pc.match_substring_regex(trimmed, r"^[+-]?inf(inity)?$", ignore_case=True)
    values = np.where(_truth(endless), np.inf, values)
    none = pc.is_in(pc.utf8_lower(trimmed), pa.array(NOTHING, pa.large_string()))
    wrong = np.isnan(values) & ~_truth(none) & _truth(pc.is_valid(column))
    commas = pc.match_substring_regex(trimmed, r"^[+-]?[0-9]+,[0-9]+$")
    return Numbers(values, wrong, _truth(commas))


def _truth(mask: pa.ChunkedArray) -> BoolArray:
    return np.asarray(mask.fill_null(False).to_numpy()).astype(bool)


def points(column: pa.ChunkedArray, name: str, use: Points) -> tuple[FloatArray, FloatArray]:
    """x and y of a geometry column.

    Parameters
    ----------
    column : Arrow column
        Well-known binary, or GeoArrow points (a struct of x and y, or lists of two numbers).
    name : str
        Its name, for messages.
    use : {"only", "representative"}
        Anything but a point is an error, or stands for a point inside it.

    Returns
    -------
    x, y : (rows,) float64
        nan for a null or empty geometry.
    """
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    kind = column.type
    if pa.types.is_struct(kind) and kind.get_field_index("x") >= 0 and kind.get_field_index("y") >= 0:
        return _floats(pc.struct_field(column, "x")), _floats(pc.struct_field(column, "y"))
    if pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type):
        return _floats(pc.list_element(column, 0)), _floats(pc.list_element(column, 1))
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan), np.full(len(column), np.nan)
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        raise SourceError(
            f"expected geometries in column {name!r}, got {kind}. Give points, or lon= and lat=."
        )
    x, y = np.full(len(column), np.nan), np.full(len(column), np.nan)
    there = np.asarray(column.is_valid().to_numpy()).astype(bool)
    known = column.cast(pa.large_binary()).drop_null().combine_chunks()
    known = known if isinstance(known, pa.Array) else pa.concat_arrays(known.chunks)
    found = _plain_points(known)
    x[there], y[there] = found if found is not None else _shapely_points(known, name, use)
    return x, y


def _plain_points(known: pa.Array) -> tuple[FloatArray, FloatArray] | None:
    """x and y when all are little-endian 2-D points in well-known binary (21 bytes each), else None."""
    offsets = np.frombuffer(known.buffers()[1], dtype=np.int64)[known.offset : known.offset + len(known) + 1]
    if not len(known) or (np.diff(offsets) != 21).any():
        return None
    data = np.frombuffer(known.buffers()[2], dtype=np.uint8)[offsets[0] : offsets[-1]].reshape(-1, 21)
    if (data[:, :5] != np.array([1, 1, 0, 0, 0], dtype=np.uint8)).any():
        return None
    xy = np.ascontiguousarray(data[:, 5:]).view("<f8")
    return xy[:, 0].astype(float), xy[:, 1].astype(float)


def _shapely_points(known: pa.Array, name: str, use: Points) -> tuple[FloatArray, FloatArray]:
    try:
        geometries = shapely.from_wkb(known.to_numpy(zero_copy_only=False))
    except shapely.errors.GEOSException as error:
        raise SourceError(f"expected well-known binary in column {name!r}, got: {error}.") from error
    empty = shapely.is_empty(geometries)
    other = (shapely.get_type_id(geometries) != 0) & ~empty
    if other.any() and use == "only":
        kinds = sorted({kind.geom_type for kind in geometries[other]})
        raise SourceError(
            f"expected points in column {name!r}, got also {listed(kinds)}. "
            'Set points = "representative" to let a point inside each stand for it, or give points.'
        )
    geometries[other] = shapely.point_on_surface(geometries[other])
    geometries[empty] = None
    return shapely.get_x(geometries), shapely.get_y(geometries)


def crs_of(text: Any) -> CRS:
    """A CRS from what the user wrote, or an error."""
    try:
        return CRS.from_user_input(text)
    except CRSError as error:
        raise SourceError(f"crs: expected a CRS such as 'EPSG:4326', got {text!r}.") from error


def crs_name(crs: CRS) -> str:
    """A short name of a CRS: its authority's code, else its own name."""
    authority = crs.to_authority(min_confidence=100)
    return ":".join(authority) if authority else crs.name


def same_crs(one: CRS, other: CRS) -> bool:
    """Whether coordinates, x first, mean the same in both."""
    return one == other or one.equals(other, ignore_axis_order=True)


def reproject(x: FloatArray, y: FloatArray, source: CRS, target: CRS) -> tuple[FloatArray, FloatArray]:
    """x and y in another CRS, east or longitude first in both: (rows,) float64, inf where that cannot be."""
    if same_crs(source, target):
        return x, y
    if not len(x):  # pyproj takes arrays of length 1 for scalars, and older ones warn of empty ones
        return x, y
    to_x, to_y = _transformer(source, target).transform(x, y, errcheck=False)
    return np.atleast_1d(to_x), np.atleast_1d(to_y)


@lru_cache(maxsize=32)
def _transformer(source: CRS, target: CRS) -> Transformer:
    return Transformer.from_crs(source, target, always_xy=True)


def on_earth(lon: FloatArray, lat: FloatArray) -> BoolArray:
    """(rows,) bool: finite, a longitude of -180 to 180 and a latitude of -90 to 90."""
    return _within(lon, 180) & _within(lat, 90)


def _within(x: FloatArray, limit: float) -> BoolArray:
    """(rows,) bool: from -limit to limit, not nan."""
    if len(x) and x.min() >= -limit and x.max() <= limit:  # nan is neither
        return np.ones(len(x), bool)
    return np.abs(x) <= limit
