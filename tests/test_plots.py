"""Plots: what they show, in words and counts; names as they are; notebooks and the sketch."""

from __future__ import annotations

import dataclasses
import re
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import geodiv as gd
from geodiv import demo, drawing, plots
from geodiv.figures import image
from geodiv.sketch import sketch
from geodiv.styles import COLOURS
from geodiv.sweep_files import write_plot

pytest.importorskip("matplotlib", reason="plots need matplotlib, the extra 'map'")

CITY = demo.fixtures()


@pytest.fixture(scope="module")
def outcome() -> gd.Outcome:
    return gd.read_run(CITY / "policy.toml").enforce(CITY / "visits.parquet")


def legend(ax: Any) -> list[str]:
    return [entry.get_text() for entry in ax.get_legend().get_texts()]


def scores(rows: list[tuple[str, float, float, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["cell_id", "distinct", "effective_fine", "fails"]).assign(
        attribute="poi"
    )


def test_remedy_map_shows_each_zone_in_its_colour(outcome: gd.Outcome) -> None:
    ax = plots.remedy_map(outcome.release)
    done = outcome.release.metadata["remedies"]
    for entry, (word, n) in zip(legend(ax), done.items(), strict=True):
        assert entry.endswith(f"({n})"), word
    drawn = {tuple(c.get_facecolor()[0]): len(c.get_paths()) for c in ax.collections}
    from matplotlib.colors import to_rgba

    assert drawn == {to_rgba(COLOURS[word]): n for word, n in done.items()}
    assert ax.get_title() == "Published zones by remedy"
    assert "degrees" in ax.get_xlabel()
    assert outcome.release.plot().get_title() == ax.get_title()


def test_a_map_is_drawn_on_the_axes_given(outcome: gd.Outcome) -> None:
    ax = drawing.new_axes()
    assert plots.remedy_map(outcome.release, ax=ax) is ax


def test_a_hole_stays_a_hole(tmp_path: Path) -> None:
    outer = shapely.Polygon([(0, 0), (3, 0), (3, 3), (0, 3)], [[(1, 1), (2, 1), (2, 2), (1, 2)]])
    for shape in (outer, shapely.reverse(outer)):
        zones = gpd.GeoDataFrame({"remedy": ["publish"]}, geometry=[shape], crs="EPSG:3035")
        path = plots.remedy_map(zones).collections[0].get_paths()[0]
        assert path.contains_point((0.5, 0.5))
        signs = [np.sign(shapely.LinearRing(ring).is_ccw - 0.5) for ring in path.to_polygons()]
        assert signs[0] != signs[1]


def test_failing_map_names_the_plainest_disclosure() -> None:
    fails = [
        ("a", ""),
        ("a", "t_max"),
        ("b", "l_min,t_max,incidence_max"),
        ("b", ""),
        ("c", "k_min"),
        ("c", "k_min"),
    ]
    frame = gpd.GeoDataFrame(
        {"cell_id": [c for c, _ in fails], "fails": [f for _, f in fails]},
        geometry=[shapely.box(i // 2, 0, i // 2 + 1, 1) for i in range(6)],
        crs="EPSG:3035",
    )
    found = legend(plots.failing_map(frame))
    assert [entry[-30:] for entry in found] == [
        "all did one thing (incidence_max) (1)"[-30:],
        "far from its surroundings (t_max) (1)"[-30:],
        "fewer persons than k_min, not judged (1)"[-30:],
    ]


def test_the_work_list_lies_below_the_line() -> None:
    frame = scores(
        [("a", 4, 3.9, ""), ("b", 4, 1.8, "l_min"), ("c", 1, 1.0, "l_min"), ("d", 3, np.nan, "k_min")]
    )
    ax = plots.distinct_effective(frame, l_min=3)
    found = legend(ax)
    assert "cells (1)" in found
    assert "the work list (2)" in found
    assert "l_min = 3" in found
    assert "internal" in ax.get_title()
    assert [float(y) for y in ax.lines[-1].get_ydata()] == [3, 3]


def test_of_a_release_only_published_figures(outcome: gd.Outcome) -> None:
    ax = plots.distinct_effective(outcome.release, attribute="poi_category")
    shown = sorted(ax.collections[0].get_offsets()[:, 1].tolist())
    published = outcome.release.cells["poi_category_effective"].dropna()
    assert shown == pytest.approx(sorted(published))
    assert "internal" not in ax.get_title()
    assert "l_min = 3" in legend(ax)


def test_mix_is_the_published_one(outcome: gd.Outcome) -> None:
    release = outcome.release
    zone = release.cells.loc[release.cells["poi_category_effective"].notna(), "cell_id"].iloc[0]
    ax = plots.mix_plot(release, zone, attribute="poi_category")
    counts = release.counts[
        (release.counts["cell_id"] == zone) & (release.counts["attribute"] == "poi_category")
    ]
    widths = sorted(bar.get_width() for bar in ax.containers[0])
    assert [w for w in widths if w > 0] == pytest.approx(sorted(counts["share"]))
    with pytest.raises(gd.UsageError, match="published zone"):
        plots.mix_plot(release, "8819635000fffff", attribute="poi_category")
    hidden = release.cells.loc[
        release.cells["poi_category_level"].eq(0) & release.cells["poi_category_effective"].isna()
    ]
    with pytest.raises(gd.UsageError, match="hidden in part"):
        plots.mix_plot(release, hidden["cell_id"].iloc[0], attribute="poi_category")


def test_a_cell_against_what_judges_it(outcome: gd.Outcome) -> None:
    rows = outcome.scores[outcome.scores["attribute"] == "poi_category"].set_index("cell_id")
    cell = rows["distance"].idxmax()
    ax = plots.cell_mix_plot(outcome.table, outcome.policy, cell, attribute="poi_category")
    mine, other = ([bar.get_width() for bar in part] for part in ax.containers)
    assert sum(mine) == pytest.approx(1)
    assert sum(other) == pytest.approx(1)
    assert sum(abs(a - b) for a, b in zip(mine, other, strict=True)) / 2 == pytest.approx(
        rows["distance"][cell]
    )
    assert legend(ax)[1].startswith(rows["reference_scope"][cell])
    assert "internal" in ax.get_title()
    with pytest.raises(gd.UsageError, match="occupied cell"):
        plots.cell_mix_plot(outcome.table, outcome.policy, "nowhere", attribute="poi_category")


def test_scores_are_mapped_a_cell_once_by_its_worst_attribute(outcome: gd.Outcome) -> None:
    found = legend(plots.remedy_map(outcome.scores))
    worst = {"publish": 0, "publish_coarsened": 1, "merge_or_suppress": 2}
    each = outcome.scores["remedy"].map(worst).groupby(outcome.scores["cell_id"]).max().value_counts()
    assert [int(entry.rsplit("(", 1)[1][:-1]) for entry in found] == each.sort_index().tolist()
    assert plots.remedy_map(outcome.scores).get_title() == "Zones by remedy (internal)"
    after = plots.remedy_map(outcome.scores, column="final_remedy")
    assert after.get_title() == "What became of the cells (internal)"
    with pytest.raises(gd.UsageError, match=r"expected a Release, or the GeoDataFrame .* got Outcome"):
        plots.remedy_map(outcome)  # type: ignore[arg-type]


def test_sweeps() -> None:
    sizes = pd.DataFrame(
        {
            "size": [7.0, 8.0],
            "attribute": "poi",
            "pass_k": [1, 0.5],
            "pass_l": [0.5, 0.9],
            "pass_t": [0.4, np.nan],
            "pass_all": 0.3,
        }
    )
    ax = plots.size_plot(sizes)
    assert ax.get_xlabel() == "H3 resolution"
    assert [t.get_text() for t in ax.get_xticklabels()] == ["7", "8"]
    assert plots.size_plot(sizes.assign(size=[250.0, 500.0])).get_xlabel() == "side of the squares (m)"
    pairs = pd.DataFrame(
        {
            "l_min": [2, 2, 3, 3],
            "t_max": [0.2, 0.3] * 2,
            "attribute": "poi",
            "pass_all": 0.5,
            "coverage": [0.8, 0.9, 0.7, 0.8],
        }
    )
    policy = {"reference": {"scope": "ring", "order": 2}}
    ax = plots.threshold_plot(pairs, policy=policy)
    assert legend(ax) == ["l_min = 2", "l_min = 3"]
    assert "ring of order 2" in ax.get_xlabel().replace("\n", " ")
    assert "utility: coverage" in ax.get_ylabel()
    for single, name in ((0.3, "t_max = 0.3"), (None, "t_max off")):
        ax = plots.threshold_plot(pairs[pairs["t_max"] == 0.3].assign(t_max=single), policy=policy)
        assert legend(ax) == [name]
        assert "l_min" in ax.get_xlabel()
        assert ax.lines[0].get_xydata().tolist() == [[2, 0.9], [3, 0.8]]


def test_the_picture_of_a_sweep_says_what_it_shows(tmp_path: Path) -> None:
    import matplotlib as mpl

    passing = {"pass_k": 0.5, "pass_l": 0.4, "pass_t": 0.3, "pass_all": 0.2}
    sizes = pd.DataFrame([{"size": n, "attribute": a, **passing} for n in (7, 8) for a in ("poi", "band")])
    with mpl.rc_context({"svg.fonttype": "none"}):
        write_plot(sizes, tmp_path / "sizes.svg")
        write_plot(
            sizes.assign(l_min=2, t_max=sizes["size"] / 20).drop(columns="size"), tmp_path / "pairs.svg"
        )
    shown = (tmp_path / "sizes.svg").read_text(encoding="utf-8")
    for text in ("poi: k against", "band: k against", "(internal)", "H3 resolution", "of these, t_max"):
        assert text in shown, text
    shown = (tmp_path / "pairs.svg").read_text(encoding="utf-8")
    for text in ("band: risk against utility (internal)", "risk: t_max", "utility:", "l_min = 2"):
        assert text in shown, text


def test_of_several_attributes_one_is_named(outcome: gd.Outcome) -> None:
    with pytest.raises(gd.UsageError, match="expected one of 'poi_category', 'income_band'"):
        plots.distinct_effective(outcome.release)
    with pytest.raises(gd.UsageError, match="Did you mean 'poi_category'"):
        plots.distinct_effective(outcome.release, attribute="poi_categor")
    with pytest.raises(gd.UsageError, match="expected the column"):
        plots.distinct_effective(pd.DataFrame({"a": [1]}))


@pytest.mark.parametrize("name", ["$x$ <b> & \\frac{", "_hidden", "a\nb\u2028c", "価格 🏥", "$", "</script>"])
def test_any_name_can_be_drawn(name: str, outcome: gd.Outcome) -> None:
    frame = scores([("a", 4, 3.9, ""), ("b", 4, 1.8, "l_min")]).assign(attribute=name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        shown = image(plots.distinct_effective(frame, l_min=3), name)
    assert "<b>" not in shown
    assert "</script>" not in shown
    svg = re.search(r"base64,([^\"]+)", shown)[1]  # type: ignore[index]
    import base64

    ElementTree.fromstring(base64.b64decode(svg))


@pytest.mark.parametrize(("zones", "pictures"), [(5, 0), (60, 1)])
def test_many_hatched_zones_are_one_picture(zones: int, pictures: int) -> None:
    """Browsers print hundreds of hatched shapes in minutes."""
    import base64

    shapes = [shapely.box(i, 0, i + 1, 1) for i in range(zones)]
    frame = gpd.GeoDataFrame({"remedy": ["suppress"] * zones}, geometry=shapes, crs="EPSG:3035")
    found = re.search(r"base64,([^\"]+)", image(plots.remedy_map(frame), "m"))
    assert found
    assert base64.b64decode(found[1]).decode().count("<image") == pictures


def test_figures_are_the_same_each_time(outcome: gd.Outcome) -> None:
    assert image(plots.remedy_map(outcome.release), "m") == image(plots.remedy_map(outcome.release), "m")


def test_without_matplotlib_a_hint(outcome: gd.Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(gd.UsageError, match=re.escape("pip install 'geodiv[map]'")):
        plots.remedy_map(outcome.release)


# notebooks


def test_the_axes_and_their_figure_show_the_picture(outcome: gd.Outcome) -> None:
    ax = plots.remedy_map(outcome.release)
    for shown in (ax, ax.figure):
        assert shown._repr_png_().startswith(b"\x89PNG")
    from matplotlib.figure import Figure

    own = Figure().add_subplot()
    assert not hasattr(plots.remedy_map(outcome.release, ax=own), "_repr_png_")  # whoever brought it shows it


def test_a_release_in_a_notebook_shows_no_unpublished_cell(outcome: gd.Outcome) -> None:
    shown = outcome.release._repr_html_()
    assert "<svg" in shown
    assert f"{outcome.release.metadata['persons']:,}" in shown
    assert "the ring of order 1" in shown
    assert not [c for c in outcome.scores["cell_id"][outcome.scores["zone_id"].isna()] if c in shown]
    ElementTree.fromstring(shown.replace("&", "&amp;"))
    bare = dataclasses.replace(
        outcome.release, cells=pd.DataFrame(outcome.release.cells.drop(columns="geometry"))
    )
    assert bare._repr_html_().count("<svg") == 3


def test_a_tabulation_in_a_notebook(outcome: gd.Outcome) -> None:
    shown = outcome.table._repr_html_()
    assert "10,412 of 10,420" in shown
    assert "internal" in shown
    assert shown.count("<path") == 1
    visits = pd.DataFrame({"who": list("abc"), "cell": "c", "<b>": ["x", "y", "z"]})
    table = gd.tabulate(visits, grid=gd.ColumnGrid("cell"), person="who", attributes=[gd.Nominal("<b>")])
    assert "<b>" not in table._repr_html_()
    assert "<svg" not in table._repr_html_()


def test_sketches_are_small_whatever_they_show() -> None:
    x, y = np.meshgrid(np.arange(100), np.arange(100))
    many = shapely.box(x.ravel(), y.ravel(), x.ravel() + 1, y.ravel() + 1)
    shown = sketch(many, np.zeros(len(many)), ["#0B4F8A"], label="many", width=50)
    assert len(shown) < 60_000
    assert "viewBox" in sketch([], [], ["#0B4F8A"], label="none")
    assert sketch([None, shapely.Polygon()], [0, 0], ["#0B4F8A"], label="none").count("<path") == 0


def test_sketches_draw_every_part_of_what_has_several() -> None:
    two = shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 0, 3, 1)])
    assert sketch([two], [0], ["#0B4F8A"], label="two", degrees=False).count("M") == 2


# explore


def test_explore_has_the_palette_and_escapes(outcome: gd.Outcome) -> None:
    for name in ("folium", "mapclassify"):
        pytest.importorskip(name, reason=f"explore needs {name}, the extra 'map'")
    nasty = "</script><img src=x onerror=alert(1)>`${1}"
    cells = outcome.release.cells.assign(poi_category_top=nasty)
    page = dataclasses.replace(outcome.release, cells=cells).explore(tiles=None).get_root().render()
    for word in ("publish", "publish_coarsened", "publish_merged"):
        assert COLOURS[word].lower() in page.lower()
    assert "<img src=x" not in page
    assert "`${1}" not in page
    dataclasses.replace(outcome.release, cells=cells).explore("persons", tiles=None)
    with pytest.raises(gd.UsageError, match="Did you mean 'remedy'"):
        outcome.release.explore("remedi")


def test_explore_without_folium_a_hint(outcome: gd.Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "folium", None)
    with pytest.raises(gd.UsageError, match=re.escape("pip install 'geodiv[map]'")):
        outcome.release.explore()
    bare = dataclasses.replace(
        outcome.release, cells=pd.DataFrame(outcome.release.cells.drop(columns="geometry"))
    )
    with pytest.raises(gd.UsageError, match="outlines"):
        bare.explore()
