"""Neighbourhoods from Python, files and flags; merged zones are contiguous on every grid."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas as gpd
import h3
import numpy as np
import pandas as pd
import pytest
import shapely
from libpysal import weights as pysal_weights
from libpysal.graph import Graph
from scipy.sparse import csgraph

import geodiv as gd
from geodiv import cli

SIDE = 1000
WIDTH = 6
ACTIVITY = gd.Nominal("poi")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def geodiv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """One command in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: Any) -> tuple[int, str, str]:
        code = cli.run([str(a) for a in arguments])
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return code, shown.out, shown.err

    return command


def places() -> list[tuple[int, int]]:
    """A board of WIDTH x WIDTH places; one place is missing, and one lies far off."""
    board = [(x, y) for x in range(WIDTH) for y in range(WIDTH) if (x, y) != (2, 2)]
    return [*board, (50, 50)]


def zones() -> gpd.GeoDataFrame:
    """Square zones with ids that look like numbers; the zone far off is an island."""
    shapes = [shapely.box(SIDE * x, SIDE * y, SIDE * (x + 1), SIDE * (y + 1)) for x, y in places()]
    ids = [f"{i:03}" for i in range(len(shapes))]
    return gpd.GeoDataFrame(
        {"zone": ids, "half": ["w" if x < 3 else "e" for x, _ in places()]}, geometry=shapes, crs="EPSG:3035"
    )


def visits(seed: int = 7) -> pd.DataFrame:
    """Eleven to eighteen persons a zone, who mostly do what is common there."""
    rng = np.random.default_rng(seed)
    rows = []
    for (x, y), zone in zip(places(), zones()["zone"], strict=True):
        common = rng.choice(["shop", "food", "school", "clinic"])
        for i in range(rng.integers(5, 19)):
            poi = common if rng.random() < 0.6 else rng.choice(["shop", "food", "school", "clinic", "park"])
            rows.append((f"{zone}-{i}", zone, SIDE * (x + 0.5), SIDE * (y + 0.5), poi))
    return pd.DataFrame(rows, columns=["who", "zone", "x", "y", "poi"])


def cell_of(x: int, y: int) -> str:
    return h3.local_ij_to_cell(h3.latlng_to_cell(48.2, 16.37, 8), x, y)


def tabulations() -> dict[str, gd.Tabulation]:
    """The same visits on every grid that has neighbours."""
    frame = visits()
    hexes = {zone: cell_of(x, y) for (x, y), zone in zip(places()[:-1], zones()["zone"][:-1], strict=True)}
    frame["hex"] = frame["zone"].map(hexes)
    near = frame.dropna(subset=["hex"])
    grids: dict[str, tuple[Any, pd.DataFrame]] = {
        "queen": (gd.ZoneGrid(zones(), "zone"), frame),
        "rook": (gd.ZoneGrid(zones(), "zone", "zone", "rook"), frame),
        "square": (gd.SquareGrid(SIDE, "EPSG:3035"), frame),
        "h3": (gd.H3Grid(8, column="hex"), near),
        "column": (gd.ColumnGrid("hex"), near),
    }
    crs = {"queen": "EPSG:3035", "square": "EPSG:3035"}
    return {
        name: gd.tabulate(
            table,
            grid=grid,
            person="who",
            attributes=[ACTIVITY],
            **({"lon": "x", "lat": "y", "crs": crs[name]} if name in crs else {}),
        )
        for name, (grid, table) in grids.items()
    }


TABLES = tabulations()


def kernel() -> Graph:
    """Weights that fall with the distance of the middles, also of zones that do not touch."""
    points = zones().set_index("zone").centroid
    return Graph.build_kernel(points, kernel="triangular", bandwidth=2500.0)


def band() -> Graph:
    return Graph.build_distance_band(zones().set_index("zone").centroid, 2100.0, binary=True)


GRAPHS: dict[str, Callable[[], Any]] = {
    "kernel": kernel,
    "band": band,
    "w": lambda: kernel().to_W(),
    "knn": lambda: Graph.build_knn(zones().set_index("zone").centroid, k=3),
}
REFERENCES: dict[str, Callable[[], Any]] = {
    "ring": lambda: gd.Ring(max_order=3, min_persons=30),
    **{name: lambda build=build: gd.Weights(build()) for name, build in GRAPHS.items()},
    "region": lambda: gd.Region(dict(zip(zones()["zone"], zones()["half"], strict=True))),
}


# --- merging ------------------------------------------------------------------------------------------------


def contiguous(table: gd.Tabulation, members: list[str]) -> bool:
    at = np.flatnonzero(np.isin(table.cells, members))
    assert len(at) == len(members)
    return bool(csgraph.connected_components(table.adjacency[at][:, at], directed=False)[0] == 1)


@pytest.mark.parametrize("grid", TABLES)
@pytest.mark.parametrize("ladder", [("merge", "suppress"), ("recode", "merge", "suppress")])
def test_merged_zones_are_contiguous_on_every_grid(grid: str, ladder: tuple[str, ...]) -> None:
    table = TABLES[grid]
    policy = gd.Policy(
        k_min=10, l_min=2.5, t_max=0.5, ladder=ladder, reference=gd.Ring(max_order=3), residual=False
    )
    cells = gd.enforce(table, policy).release.cells
    merged = [members.split() for members in cells["members"] if " " in members]
    assert merged
    for members in merged:
        assert contiguous(table, members), members
    if grid == "rook":
        shapes = cells.geometry[cells["n_members"] > 1]
        assert (shapes.buffer(-1).geom_type == "Polygon").all()


@pytest.mark.parametrize("reference", REFERENCES)
def test_merging_follows_contiguity_whatever_zones_are_judged_against(reference: str) -> None:
    table = TABLES["rook"]
    policy = gd.Policy(
        k_min=10,
        l_min=2.5,
        t_max=0.45,
        ladder=("merge", "suppress"),
        reference=REFERENCES[reference](),
        residual=False,
    )
    cells = gd.enforce(table, policy).release.cells
    assert (cells["n_members"] > 1).any()
    for members in cells["members"]:
        assert contiguous(table, members.split())


def test_contiguity_is_that_of_libpysal_and_islands_stay() -> None:
    frame = zones()
    for name in ("queen", "rook"):
        table = TABLES[name]
        graph = Graph.build_contiguity(frame.set_index("zone"), rook=name == "rook", strict=True)
        expected = {(a, b) for (a, b), w in graph.adjacency.items() if w and a != b}
        i, j = table.adjacency.nonzero()
        assert set(zip(table.cells[i], table.cells[j], strict=True)) == expected
        assert table.adjacency.shape == (len(frame),) * 2
        assert table.adjacency[[-1]].nnz == 0


# --- weights ------------------------------------------------------------------------------------------------


def mix_by_hand(table: gd.Tabulation, weight: dict[str, float]) -> np.ndarray:
    """The mix of the reference cells, each with its weight: counts of persons by value."""
    eligible = table.persons >= 10
    by_cell = np.array([weight.get(cell, 0.0) for cell in table.cells]) * eligible
    mix = by_cell @ table.base.labels[0][0].toarray()
    return mix / mix.sum()


@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS)
def test_weights_are_used_as_they_are(build: Callable[[], Any]) -> None:
    table, graph = TABLES["queen"], build()
    adjacency = graph.adjacency if hasattr(graph, "adjacency") else Graph.from_W(graph).adjacency
    scores = gd.score(table, gd.Policy(k_min=10, t_max=1.0, reference=gd.Weights(graph))).set_index("cell_id")
    seen = 0
    for i, cell in enumerate(table.cells):
        own = {n: w for (f, n), w in adjacency.items() if f == cell and n != cell and w > 0}
        if table.persons[i] < 10 or scores.at[cell, "reference_scope"] != "weights":
            continue
        belief = table.base.labels[0][0][[i]].toarray().ravel()
        distance = np.abs(belief / belief.sum() - mix_by_hand(table, own)).sum() / 2
        assert scores.at[cell, "distance"] == pytest.approx(distance, abs=1e-9)
        seen += 1
    assert seen > 5


def saved(graph: Graph, name: str, folder: Path) -> str:
    path = folder / name
    if name.endswith(".csv"):
        graph.adjacency.reset_index().to_csv(path, index=False)
    elif name == "graph.parquet":
        graph.to_parquet(path)
    elif name.endswith(".parquet"):
        graph.adjacency.reset_index().to_parquet(path)
    elif name.endswith(".gal"):
        graph.to_gal(path)
    else:
        graph.to_gwt(path)
    return name


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (kernel, "w.csv"),
        (kernel, "w.parquet"),
        (kernel, "graph.parquet"),
        (kernel, "w.gwt"),
        (band, "w.gal"),
        (band, "w.csv"),
    ],
)
def test_a_graph_in_a_file_gives_the_scores_of_the_graph(
    build: Callable[[], Graph], name: str, geodiv: Run, tmp_path: Path
) -> None:
    graph = build()
    visits().to_csv(tmp_path / "visits.csv", index=False)
    zones().to_file(tmp_path / "zones.gpkg")
    flags = (
        "--zones",
        "zones.gpkg",
        "--zones-id",
        "zone",
        "--cell-column",
        "zone",
        "--person",
        "who",
        "--attribute",
        "poi",
    )
    code, _, err = geodiv(
        "score", "visits.csv", *flags, "--t", 1, "--weights", saved(graph, name, tmp_path), "-o", "work.gpkg"
    )
    assert code == 0, err
    written = gpd.read_file(tmp_path / "work.gpkg", layer="scores").set_index("cell_id")
    expected = gd.score(TABLES["queen"], gd.Policy(t_max=1.0, reference=gd.Weights(graph))).set_index(
        "cell_id"
    )
    assert (written["reference_scope"].fillna("") == expected["reference_scope"].fillna("")).all()
    assert (written["reference_scope"] == "weights").any()
    np.testing.assert_allclose(
        written["distance"].astype(float), expected["distance"].astype(float), rtol=1e-6
    )


def test_a_w_of_libpysal_with_an_island_is_taken() -> None:
    frame = zones().set_index("zone")
    w = pysal_weights.Queen.from_dataframe(frame, use_index=True, silence_warnings=True)
    scores = gd.score(TABLES["queen"], gd.Policy(reference=gd.Weights(w, fallback="none"))).set_index(
        "cell_id"
    )
    graph = gd.score(
        TABLES["queen"], gd.Policy(reference=gd.Weights(Graph.from_W(w), fallback="none"))
    ).set_index("cell_id")
    pd.testing.assert_frame_equal(pd.DataFrame(scores), pd.DataFrame(graph))
    assert scores["reference_scope"].iloc[-1] in (None, "none")


def test_ids_of_a_graph_that_are_numbers_meet_ids_that_are_text() -> None:
    frame = visits().assign(zone=lambda f: f["zone"].astype(int))
    table = gd.tabulate(frame, grid=gd.ColumnGrid("zone"), person="who", attributes=[ACTIVITY])
    for dtype in (int, float):
        points = zones().assign(zone=lambda f: f["zone"].astype(dtype)).set_index("zone").centroid  # noqa: B023
        graph = Graph.build_distance_band(points, 2100.0, binary=True)
        scores = gd.score(table, gd.Policy(reference=gd.Weights(graph)))
        assert (scores["reference_scope"] == "weights").any()


# --- regions ------------------------------------------------------------------------------------------------


def districts(folder: Path, name: str) -> str:
    frame = gpd.GeoDataFrame(
        {"half": ["w", "e"]},
        geometry=[shapely.box(0, 0, 3 * SIDE, 6 * SIDE), shapely.box(3 * SIDE, 0, 60 * SIDE, 60 * SIDE)],
        crs="EPSG:3035",
    )
    if name.endswith(".parquet"):
        frame.to_parquet(folder / name)
    else:
        frame.to_file(folder / name.partition("|")[0], layer="halves" if "|" in name else None)
        if "|" in name:
            frame.to_file(folder / name.partition("|")[0], layer="again")
    return name


@pytest.mark.parametrize("name", ["r.csv", "r.gpkg", "r.geojson", "r.parquet", "r.gpkg|layername=halves"])
def test_regions_by_column_or_by_layer_give_the_same_scores(name: str, geodiv: Run, tmp_path: Path) -> None:
    visits().to_csv(tmp_path / "visits.csv", index=False)
    zones().to_file(tmp_path / "zones.gpkg")
    if name == "r.csv":
        zones().rename(columns={"zone": "cell_id", "half": "region"})[["cell_id", "region"]].to_csv(
            tmp_path / name, index=False
        )
    else:
        districts(tmp_path, name)
    column = () if name == "r.csv" else ("--regions-column", "half")
    flags = (
        "--zones",
        "zones.gpkg",
        "--zones-id",
        "zone",
        "--cell-column",
        "zone",
        "--person",
        "who",
        "--attribute",
        "poi",
    )
    code, _, err = geodiv("score", "visits.csv", *flags, "--regions", name, *column, "-o", "work.gpkg")
    assert code == 0, err
    written = gpd.read_file(tmp_path / "work.gpkg", layer="scores").set_index("cell_id")
    regions = dict(zip(zones()["zone"], zones()["half"], strict=True))
    expected = gd.score(TABLES["queen"], gd.Policy(reference=gd.Region(regions))).set_index("cell_id")
    assert (written["reference_scope"] == "region").any()
    np.testing.assert_allclose(
        written["distance"].astype(float), expected["distance"].astype(float), rtol=1e-6
    )


def test_several_layers_of_regions_need_a_name(geodiv: Run, tmp_path: Path) -> None:
    visits().to_csv(tmp_path / "visits.csv", index=False)
    districts(tmp_path, "r.gpkg|layername=halves")
    flags = (
        "--cell-column",
        "zone",
        "--person",
        "who",
        "--attribute",
        "poi",
        "--regions",
        "r.gpkg",
        "--regions-column",
        "half",
    )
    code, _, err = geodiv("score", "visits.csv", *flags)
    assert code == 3
    assert "Regions: 'r.gpkg' has several layers: 'halves', 'again'" in err


# --- zones in files -----------------------------------------------------------------------------------------


def test_queen_and_rook_by_file_and_by_flag(geodiv: Run, tmp_path: Path) -> None:
    visits().to_csv(tmp_path / "visits.csv", index=False)
    zones().to_file(tmp_path / "zones.gpkg")
    found = {}
    for contiguity in ("queen", "rook"):
        (tmp_path / "policy.toml").write_text(
            '[visits]\nperson = "who"\n[grid]\nkind = "zones"\npath = "zones.gpkg"\nid = "zone"\ncolumn = "zone"\n'
            f'contiguity = "{contiguity}"\ntolerance = 0.5\n[[attribute]]\ncolumn = "poi"\n',
            encoding="utf-8",
        )
        run = gd.read_run(tmp_path / "policy.toml")
        assert run.grid.describe()["contiguity"] == contiguity
        assert run.grid.describe()["tolerance_m"] == 0.5
        found[contiguity] = run.tabulate(tmp_path / "visits.csv").adjacency.nnz
        flags = (
            "--zones",
            "zones.gpkg",
            "--zones-id",
            "zone",
            "--cell-column",
            "zone",
            "--person",
            "who",
            "--attribute",
            "poi",
        )
        out = f"{contiguity}.gpkg"
        code, _, err = geodiv(
            "enforce", "visits.csv", *flags, "--contiguity", contiguity, "--ring", 1, "--l", 2, "-o", out
        )
        assert code == 0, err
        assert gd.read_release(tmp_path / out).metadata["grid"]["contiguity"] == contiguity
    assert found["queen"] > found["rook"]


def test_a_repaired_zone_is_said_to_be_repaired(geodiv: Run, tmp_path: Path) -> None:
    visits().to_csv(tmp_path / "visits.csv", index=False)
    frame = zones()
    x, y = SIDE * 50, SIDE * 50
    corners = [(x, y), (x + SIDE, y + SIDE), (x + SIDE, y), (x, y + SIDE)]
    frame.loc[len(frame) - 1, "geometry"] = shapely.Polygon(corners)
    frame.to_file(tmp_path / "zones.gpkg")
    flags = ("--zones", "zones.gpkg", "--zones-id", "zone", "--cell-column", "zone")
    for verb, more in (("score", ()), ("enforce", ("-o", "r.gpkg"))):
        code, _, err = geodiv(
            verb, "visits.csv", *flags, "--person", "who", "--attribute", "poi", "--l", 2, *more
        )
        assert code == 0, err
        assert "zones whose outline was not valid and has been repaired: 1" in err


def test_contiguity_belongs_to_zones(geodiv: Run) -> None:
    code, _, err = geodiv(
        "score", "v.csv", "--h3", 8, "--contiguity", "rook", "--person", "who", "--attribute", "poi"
    )
    assert code == 2
    assert "--contiguity belongs to --zones" in err


# --- ids of a column ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", ["tracts", "h3"])
@pytest.mark.parametrize("name", ["release.gpkg", "release.csv"])
def test_a_column_of_ids_end_to_end(ids: str, name: str, geodiv: Run, tmp_path: Path) -> None:
    frame = visits().iloc[:-1]
    if ids == "h3":
        cells = {
            zone: cell_of(x, y) for (x, y), zone in zip(places()[:-1], zones()["zone"][:-1], strict=True)
        }
        frame = frame.assign(zone=frame["zone"].map(cells)).dropna(subset=["zone"])
    frame.drop(columns=["x", "y"]).to_csv(tmp_path / "visits.csv", index=False)
    flags = ("--cell-column", "zone", "--person", "who", "--attribute", "poi", "--l", 2)
    code, out, err = geodiv("enforce", "visits.csv", *flags, "-o", name, "--work", "work.gpkg", "--json")
    assert code == 0, err
    assert json.loads(out)["zones"] > 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        [name, "release.json", "visits.csv", "work.gpkg"]
    )
    code, _, err = geodiv("info", name)
    assert code == 0, err
    code, _, err = geodiv("info", "work.gpkg")
    assert code == 0, err
    if name == "release.gpkg":
        layer = gpd.read_file(tmp_path / name, layer="cells")
        has = isinstance(layer, gpd.GeoDataFrame) and layer.geometry.notna().all()
        assert has == (ids == "h3")
        assert set(layer["cell_id"]) <= set(frame["zone"])
        assert ("area_m2" in layer and layer["area_m2"].notna().all()) == (ids == "h3")
    else:
        counts = pd.read_csv(tmp_path / name, dtype=str)
        assert set(counts["cell_id"]) <= set(frame["zone"])
