"""Run: a whole run in one TOML file. Visits, grid, attributes, policy and the texts of the release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .attribute import Attribute, Nominal, Numeric, Ordinal
from .errors import GeodivError, PolicyError, did_you_mean, listed
from .place_files import PlaceMap
from .policy import Global, Policy, Reference, Region, Ring, Weights
from .policy_file import Tables, check, named_files, parse, written
from .publication import Publication
from .reference_files import RegionLayer, read_graph, read_regions
from .taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from .enforcement import Outcome
    from .engines.protocol import Engine
    from .grids.protocol import Grid
    from .tabulation import Tabulation

    Progress = Callable[[str, int, int], None]

_KINDS = {"nominal": Nominal, "ordinal": Ordinal, "numeric": Numeric}
_NEEDED = {
    "h3": ("resolution",),
    "square": ("size", "crs"),
    "zones": ("path", "id"),
    "column": ("column",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything that a run is told, apart from the visits.

    Parameters
    ----------
    visits : mapping
        Keywords of `tabulate` that say how visits are read: person, lon, lat, crs, layer, on_bad_rows, points.
    grid : Grid
    attributes : tuple of Attribute
    policy : Policy
    publication : Publication
    text : str
        The run as TOML, echoed into the release's metadata.
    region_layer : RegionLayer, optional
        Polygons that name each cell's region; the cells are known after counting only, see `policy_for`.
    maps : tuple of PlaceMap
        The maps behind the policy's places, for tables of another grid.
    files : tuple of Path
        What was read for it: the policy file, taxonomies, zones, regions, weights and maps.

    Examples
    --------
    >>> run = Run.of({"visits": {"person": "who"}, "grid": {"kind": "h3", "resolution": 8}, "gates": {"k_min": 20},
    ...               "attribute": [{"column": "poi"}]})
    >>> run.policy.k_min, run.attributes[0].column
    (20, 'poi')
    """

    visits: Mapping[str, Any]
    grid: Grid
    attributes: tuple[Attribute, ...]
    policy: Policy
    publication: Publication = field(default_factory=Publication)
    text: str = ""
    region_layer: RegionLayer | None = None
    maps: tuple[PlaceMap, ...] = ()
    files: tuple[Path, ...] = ()

    @classmethod
    def of(cls, tables: Mapping[str, Any], folder: str | Path = ".", name: str = "this run") -> Run:
        """The run that these tables of a policy file describe; relative paths start at `folder`."""
        check(tables, name)
        return _run(dict(tables), written(tables), Path(folder), name)

    def tabulate(
        self,
        source: Any,
        *,
        engine: str | Engine = "memory",
        rejects: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Tabulation:
        """The counts of these visits; see `geodiv.tabulate`."""
        from .tabulation import tabulate

        return tabulate(
            source,
            grid=self.grid,
            attributes=list(self.attributes),
            engine=engine,
            rejects=rejects,
            progress=progress,
            **self.visits,
        )

    def policy_for(self, table: Tabulation) -> Policy:
        """The policy for these cells: `policy`, with places by their grid and the regions that a layer names.

        Raises
        ------
        PolicyError
            Regions come from a layer and the grid has no geometry.
        """
        places = tuple(each.on(table.grid) for each in self.maps)
        policy = replace(self.policy, places=places) if places else self.policy
        if self.region_layer is None:
            return policy
        outlines = table.geometry()
        if outlines is None:
            raise PolicyError(
                "regions from a polygon layer need cells with geometry, and this grid has none. "
                "Give a CSV with the columns cell_id and region instead."
            )
        import geopandas as gpd

        regions = self.region_layer.regions(table.cells, gpd.GeoSeries(outlines, crs=table.grid.crs))
        before = policy.reference
        return replace(policy, reference=Region(regions, before.min_persons, before.fallback))  # type: ignore[union-attr]

    def score(
        self, source: Any, *, engine: str | Engine = "memory", progress: Progress | None = None
    ) -> pd.DataFrame:
        """Count and score these visits: one row per cell and attribute, internal; see `geodiv.score`."""
        from .engines.choice import opened
        from .scores import score

        with opened(engine) as chosen:
            table = self.tabulate(source, engine=chosen, progress=progress)
            return score(table, self.policy_for(table))

    def enforce(
        self, source: Any, *, engine: str | Engine = "memory", progress: Progress | None = None
    ) -> Outcome:
        """Count these visits and apply remedies until nothing fails: what the command line does."""
        table = self.tabulate(source, engine=engine, progress=progress)
        return self.enforce_table(table, progress=progress)

    def enforce_table(self, table: Tabulation, *, progress: Progress | None = None) -> Outcome:
        """`enforce` for visits that are counted already."""
        from .enforcement import enforce

        return enforce(table, self.policy_for(table), self.publication, run_text=self.text, progress=progress)


def read_run(path: str | Path) -> Run:
    """The run in a policy.toml; paths in it are relative to its folder.

    Parameters
    ----------
    path : str or Path
        TOML with the tables visits, grid, attribute, gates, reference, remedies, release. Every key is the Python
        keyword of the same name.

    Raises
    ------
    PolicyError
        The file is missing or not UTF-8 TOML, or a table, key or value is not what it must be; the message says where.
    SourceError, TaxonomyError, GridError
        A file that it names is missing or wrong.

    Examples
    --------
    >>> import geodiv as gd
    >>> run = gd.read_run("fixtures/policy.toml")
    >>> run.policy.k_min, [a.column for a in run.attributes]
    (10, ['poi_category', 'income_band'])
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PolicyError(f"expected a policy file at '{path}', got: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise PolicyError(
            f"expected UTF-8 text in '{path}', got another encoding. Save it as UTF-8."
        ) from None
    run = _run(parse(text, str(path)), text, path.parent, str(path))
    return replace(run, files=(path, *run.files))


def _run(tables: Tables, text: str, folder: Path, name: str) -> Run:
    visits = {"on_bad_rows": "error", **tables.get("visits", {})}
    if "person" not in visits:
        raise PolicyError(f"'{name}', [visits] person: expected the column that names the person, got none.")
    if empty := [key for key, value in visits.items() if value == ""]:
        raise PolicyError(f"'{name}', [visits] {empty[0]}: expected a text, got an empty one. Fill it in.")
    if visits["on_bad_rows"] not in ("error", "skip"):
        raise PolicyError(
            f"'{name}', [visits] on_bad_rows: expected 'error' or 'skip', got {visits['on_bad_rows']!r}."
        )
    if visits.get("points", "only") not in ("only", "representative"):
        raise PolicyError(
            f"'{name}', [visits] points: expected 'only' or 'representative', got {visits['points']!r}."
        )
    grid = _placed(f"'{name}', [grid]", lambda: _grid(tables.get("grid", {}), folder))
    attributes = tuple(
        _placed(f"'{name}', [[attribute]]", lambda row=row: _attribute(row, folder))  # type: ignore[misc]
        for row in tables.get("attribute", [])
    )
    if not attributes:
        raise PolicyError(f"'{name}': expected at least one [[attribute]] with a column, got none.")
    reference, layer = _placed(
        f"'{name}', [reference]", lambda: _reference(tables.get("reference", {}), folder)
    )
    maps = tuple(
        _placed(f"'{name}', [[places]]", lambda row=row: _places(row, grid, attributes, folder))  # type: ignore[misc]
        for row in tables.get("places", [])
    )
    keys = {**tables.get("gates", {}), **tables.get("remedies", {})}
    places = tuple(each.places for each in maps)
    policy = _placed(f"'{name}'", lambda: Policy(**keys, reference=reference, places=places))
    for attribute in attributes:
        _placed(f"'{name}', [[attribute]]", lambda a=attribute: policy.thresholds(a))  # type: ignore[misc]
    publication = _placed(f"'{name}', [release]", lambda: Publication(**tables.get("release", {})))
    return Run(
        visits=visits,
        grid=grid,
        attributes=attributes,
        policy=policy,
        publication=publication,
        text=text,
        region_layer=layer,
        maps=maps,
        files=tuple(folder / file for file in named_files(tables)),
    )


def _placed(where: str, build: Callable[[], Any]) -> Any:
    """What `build` returns; its error gets the place in the file in front."""
    try:
        return build()
    except GeodivError as error:
        raise type(error)(f"{where}: {error}") from None


def _grid(table: Mapping[str, Any], folder: Path) -> Grid:
    keys = dict(table)
    kind = keys.pop("kind", None)
    if kind is None:
        raise PolicyError('expected a grid, such as kind = "h3" and resolution = 8, got none.')
    if lacking := [key for key in _NEEDED[kind] if key not in keys]:
        raise PolicyError(f"kind = {kind!r} needs {' and '.join(lacking)}.")
    if kind == "h3":
        from .grids.h3 import H3Grid

        return H3Grid(**keys)
    if kind == "square":
        from .grids.square import SquareGrid

        return SquareGrid(**keys)
    if kind == "column":
        from .grids.column import ColumnGrid

        return ColumnGrid(**keys)
    from .grids.zones import ZoneGrid

    return ZoneGrid.read(folder / keys.pop("path"), **keys)


def _attribute(table: Mapping[str, Any], folder: Path) -> Attribute:
    keys = dict(table)
    if "column" not in keys:
        raise PolicyError("expected a column, got none.")
    version = keys.pop("taxonomy_version", "")
    if "taxonomy" in keys:
        keys["taxonomy"] = Taxonomy.read(folder / keys["taxonomy"], version)
    elif version:
        raise PolicyError(f"'{keys['column']}': taxonomy_version stands without a taxonomy.")
    return _KINDS[keys.pop("kind", "nominal")](**keys)


def _places(
    table: Mapping[str, Any], grid: Grid, attributes: tuple[Attribute, ...], folder: Path
) -> PlaceMap:
    if lacking := [key for key in ("attribute", "path", "column") if key not in table]:
        raise PolicyError(f"expected {' and '.join(lacking)}, got none.")
    known = {attribute.column: attribute for attribute in attributes}
    if table["attribute"] not in known:
        raise PolicyError(
            f"attribute: expected one of {listed(known)}, got {table['attribute']!r}."
            f"{did_you_mean(table['attribute'], known)}"
        )
    mapping = table.get("mapping")
    return PlaceMap.read(
        folder / table["path"],
        grid,
        known[table["attribute"]],
        column=table["column"],
        mapping=None if mapping is None else folder / mapping,
        layer=table.get("layer"),
        crs=table.get("crs"),
    )


def _reference(table: Mapping[str, Any], folder: Path) -> tuple[Reference, RegionLayer | None]:
    keys = dict(table)
    scope = keys.pop("scope", "global")
    if scope == "global":
        return Global(), None
    if scope == "ring":
        return Ring(**keys), None
    needed = "regions" if scope == "region" else "graph"
    if needed not in keys:
        raise PolicyError(f"scope = {scope!r} needs {needed}, the path of a file.")
    path = folder / keys.pop(needed)
    if scope == "weights":
        return Weights(read_graph(path), **keys), None
    regions = read_regions(path, keys.pop("column", None), keys.pop("layer", None))
    if isinstance(regions, RegionLayer):
        return Region({}, **keys), regions
    return Region(regions, **keys), None
