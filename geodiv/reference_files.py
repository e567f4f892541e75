"""Reference files: the regions and the weights that a policy file names by path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import SourceError, did_you_mean, listed
from .grids.layer import read_layer
from .text import as_text

if TYPE_CHECKING:
    import geopandas as gpd

_WEIGHT_COLUMNS = ["focal", "neighbor", "weight"]


@dataclass(frozen=True, slots=True, eq=False)
class RegionLayer:
    """Polygons whose names are the regions of the cells that lie in them.

    Parameters
    ----------
    layer : GeoDataFrame
        Polygons with a CRS.
    column : str
        The column that names the region.
    """

    layer: gpd.GeoDataFrame
    column: str

    def regions(self, ids: Any, geometry: gpd.GeoSeries) -> dict[str, str]:
        """Region of each cell: of the first polygon, in the layer's order, that holds the cell's representative point.

        Parameters
        ----------
        ids : (cells,) text
        geometry : (cells,) GeoSeries

        Returns
        -------
        dict of str to str
            A cell outside every polygon has none.
        """
        import geopandas as gpd
        import numpy as np

        places = geometry.representative_point().to_crs(self.layer.crs)
        points = gpd.GeoDataFrame(
            {"cell": np.arange(len(ids))}, geometry=places.to_numpy(), crs=self.layer.crs
        )
        polygons = gpd.GeoDataFrame(
            {"order": np.arange(len(self.layer))}, geometry=self.layer.geometry.to_numpy(), crs=self.layer.crs
        )
        hits = (
            points.sjoin(polygons, predicate="intersects")
            .sort_values(["cell", "order"])
            .drop_duplicates("cell")
        )
        names = self.layer[self.column].to_numpy()
        return {
            str(ids[cell]): as_text(names[order])
            for cell, order in zip(hits["cell"], hits["order"], strict=True)
        }


def read_regions(
    path: Path, column: str | None = None, layer: str | None = None
) -> Mapping[str, str] | RegionLayer:
    """The regions in a file: a CSV with the columns cell_id and region, or a polygon layer with a column of names.

    Raises
    ------
    SourceError
        The file is missing or is neither; a cell with two regions; a layer without a CRS or without `column`.
    """
    if path.suffix.lower() == ".csv":
        table = read_table(path, ["cell_id", "region"])
        pairs = table.drop_duplicates()
        if twice := sorted(pairs["cell_id"][pairs["cell_id"].duplicated()]):
            raise SourceError(f"expected one region a cell in '{path}', got several for {listed(twice)}.")
        return dict(zip(pairs["cell_id"], pairs["region"], strict=True))
    frame = read_layer(path, layer, "Regions")
    columns = [str(name) for name in frame.columns if name != frame.geometry.name]
    if column is None or column not in columns:
        raise SourceError(
            f"expected the column of '{path}' that names the region ([reference] column), got {column!r}; "
            f"it has {listed(columns)}.{did_you_mean(column, columns)}"
        )
    if not frame.geom_type.isin(["Polygon", "MultiPolygon"]).any():
        raise SourceError(f"expected polygons that name regions at '{path}', got none. Give a polygon layer.")
    if frame.crs is None:
        raise SourceError(
            f"expected a layer of polygons with a CRS at '{path}', got none. Assign its CRS first."
        )
    return RegionLayer(frame, column)


def read_graph(path: Path) -> Any:
    """The libpysal Graph in a file: .gal, .gwt, or a CSV or Parquet with the columns focal, neighbor, weight.

    Ids are text: those of a .gal or .gwt keep their zeros, which libpysal's own reader drops.

    Raises
    ------
    SourceError
        The file is missing or not of such a form, or names a pair of cells twice.
    """
    import pandas as pd
    from libpysal import graph as graphs

    suffix = path.suffix.lower()
    if not path.exists():
        raise SourceError(f"expected weights at '{path}', got: no such file.")
    if suffix in (".gal", ".gwt", ".parquet"):
        read = {".gal": _gal, ".gwt": _gwt, ".parquet": _parquet}[suffix]
        try:
            table = read(path)
        except (ValueError, OSError, IndexError, KeyError) as error:
            raise SourceError(f"expected a {suffix} file of weights at '{path}', got: {error}.") from None
    else:
        table = read_table(path, _WEIGHT_COLUMNS)
    _check_columns(list(table.columns), _WEIGHT_COLUMNS, path)
    for end in ("focal", "neighbor"):
        table[end] = [as_text(value) for value in table[end]]
    if twice := sorted(set(table["focal"][table.duplicated(["focal", "neighbor"])])):
        raise SourceError(
            f"expected each pair of cells once in '{path}', got some twice, of {listed(twice)}."
        )
    lone = sorted(set(table["neighbor"]) - set(table["focal"]))
    table = pd.concat(
        [table, pd.DataFrame({"focal": lone, "neighbor": lone, "weight": 0.0})], ignore_index=True
    )
    try:
        table["weight"] = table["weight"].astype(float)
        return graphs.Graph.from_adjacency(table)
    except ValueError as error:
        raise SourceError(
            f"expected weights, one number a pair of cells, in '{path}', got: {error}"
        ) from None


def _gal(path: Path) -> Any:
    """Pairs of a .gal: a line with the number of cells, then for each its id and neighbours; all weigh 1."""
    import pandas as pd

    lines = path.read_text(encoding="utf-8").splitlines()
    header = lines[0].split()
    rows = []
    for i in range(1, 2 * int(header[1 if len(header) > 1 else 0]), 2):
        cell, _ = lines[i].split()
        near = lines[i + 1].split() if i + 1 < len(lines) else []
        rows += [(cell, other, 1.0) for other in near] or [(cell, cell, 0.0)]
    return pd.DataFrame(rows, columns=_WEIGHT_COLUMNS)


def _gwt(path: Path) -> Any:
    """Rows of a .gwt: a header line, then focal, neighbour and weight between blanks."""
    import pandas as pd

    return pd.read_csv(
        path,
        sep=r"\s+",
        skiprows=1,
        names=_WEIGHT_COLUMNS,
        dtype=str,
        keep_default_na=False,
        encoding="utf-8",
    )


def _parquet(path: Path) -> Any:
    """Rows of a Parquet file, also of one that libpysal's ``Graph.to_parquet`` wrote."""
    import pandas as pd

    table = pd.read_parquet(path)
    return table.reset_index() if set(table.index.names) == {"focal", "neighbor"} else table


def read_table(path: Path, columns: list[str]) -> Any:
    """The columns of a UTF-8 CSV as text; a SourceError names the file when it is missing or has others."""
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except OSError as error:
        raise SourceError(f"expected a table at '{path}', got: {error.strerror or error}.") from None
    except ValueError as error:
        raise SourceError(f"expected a UTF-8 CSV at '{path}', got: {error}.") from None
    _check_columns(list(table.columns), columns, path)
    return table[columns]


def _check_columns(found: list[str], expected: list[str], path: Path) -> None:
    if lacking := [name for name in expected if name not in found]:
        raise SourceError(
            f"expected the columns {listed(expected)} in '{path}', {listed(lacking)} "
            f"{'is' if len(lacking) == 1 else 'are'} not among {listed(found) or 'nothing'}."
        )
