"""Coordinate reference systems: read once, named once, and what one of their units is in metres."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import GridError

if TYPE_CHECKING:
    from pyproj import CRS


def read_crs(crs: Any) -> CRS:
    """The CRS that a user's text, EPSG number or pyproj object names, or an error.

    Examples
    --------
    >>> read_crs("EPSG:3035").is_projected
    True
    """
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        return CRS.from_user_input(crs)
    except CRSError:
        raise GridError(
            f"CRS: expected the name of a coordinate reference system such as 'EPSG:3035', got {str(crs)!r}."
        ) from None


def crs_name(crs: CRS) -> str:
    """``authority:code`` of a CRS that a registry holds, otherwise its WKT.

    Examples
    --------
    >>> crs_name(read_crs(2263))
    'EPSG:2263'
    """
    authority = crs.to_authority(min_confidence=100)
    return ":".join(authority) if authority else str(crs.to_wkt())


def metres_per_unit(crs: CRS) -> float:
    """Metres in one unit of a projected CRS; for a geographic one, in one degree or other unit of latitude.

    Examples
    --------
    >>> round(metres_per_unit(read_crs("EPSG:2263")), 7)
    0.3048006
    """
    factor = float(crs.axis_info[0].unit_conversion_factor)
    return factor * 6_371_007.2 if crs.is_geographic else factor
