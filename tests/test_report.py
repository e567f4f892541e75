"""The report: public figures only in the public one, everything in the internal one, and a JSON twin of both."""

from __future__ import annotations

import base64
import dataclasses
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas as gpd
import pandas as pd
import pytest

import geodiv as gd
from geodiv import cli, demo
from geodiv.findings import internal_findings, public_findings, thresholds, work_list
from geodiv.page import Page
from geodiv.report import findings_of, report_page, twin, write_report
from geodiv.workfile import Work, is_work, read_work

CITY = demo.fixtures()
NASTY = "</script><img src=x onerror=alert(1)>\u2028`${1}'\"&=cmd|' /C calc'!A0"
Folder = tuple[gd.Outcome, Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The fixture city, its release.gpkg, work.gpkg and the reports of both."""
    folder = tmp_path_factory.mktemp("reports")
    outcome = demo.make_demo(folder)
    write_report(gd.read_release(folder / "release.gpkg"), folder / "public.html")
    write_report(read_work(folder / "work.gpkg"), folder / "internal.html")
    return outcome, folder


def words(page: str) -> str:
    """All that a page says, with the texts inside its images."""
    images = (base64.b64decode(data).decode() for data in re.findall(r"base64,([^\"]+)", page))
    return html.unescape("\n".join([re.sub(r"base64,[^\"]+", "", page), *images]))


def sections(page: str) -> dict[str, str]:
    """Text of each section by its anchor."""
    found = re.findall(r'<section id="(\w+)">(.*?)</section>', page, re.S)
    return {name: html.unescape(re.sub("<[^>]+>", " ", body)) for name, body in found}


def test_the_public_report_names_no_unpublished_cell(made: Folder) -> None:
    outcome, folder = made
    text = (
        words((folder / "public.html").read_text(encoding="utf-8"))
        + (folder / "public.html.json").read_text()
    )
    hidden = outcome.scores["cell_id"][outcome.scores["zone_id"].isna()].unique()
    assert len(hidden)
    assert not [cell for cell in hidden if cell in text]


def test_the_public_report_holds_published_figures_only(made: Folder) -> None:
    outcome, folder = made
    bare = dataclasses.replace(outcome, scores=None, final_scores=None, table=None, plan=None)
    again = json.loads(json.dumps(public_findings(gd.read_release(folder / "release.gpkg")), default=str))
    assert public_findings(bare.release)["released"] == again["released"]
    text = (folder / "public.html.json").read_text(encoding="utf-8")
    for figure in outcome.scores.loc[outcome.scores["fails"].str.contains("l_min"), "top_share"]:
        assert f"{figure:.6f}" not in text or figure == 1


def test_it_says_which_variant_it_is(made: Folder) -> None:
    _, folder = made
    public, internal = (
        (folder / f"{name}.html").read_text(encoding="utf-8") for name in ("public", "internal")
    )
    assert "PUBLIC" in public
    assert "INTERNAL" not in public
    assert "<title>INTERNAL" in internal
    assert re.search(r"<thead><tr><td><div class=\"notice\" role=\"note\">INTERNAL", internal)
    assert json.loads((folder / "internal.html.json").read_text())["notice"].startswith("INTERNAL")


def test_what_was_released(made: Folder) -> None:
    outcome, folder = made
    metadata = outcome.release.metadata
    found = sections((folder / "public.html").read_text(encoding="utf-8"))
    for key in ("zones", "cells", "persons", "not_published"):
        assert f"{metadata[key]:,}" in found["released"]
    assert f"{metadata['coverage']:.2f}" in found["released"]
    assert f"Rounds: {metadata['rounds']}." in found["remedies"]
    for n in metadata["remedies"].values():
        assert str(n) in found["remedies"]
    for reason, n in metadata["dropped"].items():
        assert re.search(rf"{reason}\s+{n}\b", found["intake"])
    taxonomy = metadata["attributes"][0]["taxonomy"]
    assert taxonomy["digest"] in found["taxonomy"]
    assert taxonomy["version"] in found["taxonomy"]
    assert metadata["input_digest"] in found["provenance"]
    assert "<20k" in found["provenance"]


def test_every_t_stands_beside_its_reference(made: Folder) -> None:
    outcome, folder = made
    rows = thresholds(outcome.release.metadata)
    assert {r["gate"] for r in rows if r["against"]} == {"t_max", "shift_max"}
    for name in ("public", "internal"):
        found = sections((folder / f"{name}.html").read_text(encoding="utf-8"))
        for section in ("thresholds", "noise"):
            for match in re.finditer(r"t_max\s+0\.\d|\b0\.[34], to", found[section]):
                assert "ring of order 1" in found[section][match.start() : match.end() + 60]
    before = sections((folder / "internal.html").read_text(encoding="utf-8"))["before"]
    assert re.search(r"t_max \d+ \(to the ring of order 1", before)


def test_the_json_twin_says_the_same(made: Folder) -> None:
    outcome, folder = made
    public = json.loads((folder / "public.html.json").read_text(encoding="utf-8"))
    assert public["released"]["zones"] == len(outcome.release.cells)
    assert public["thresholds"] == thresholds(outcome.release.metadata)
    assert public["audits"]["attack"]["failed"] is False
    internal = json.loads((folder / "internal.html.json").read_text(encoding="utf-8"))
    scores = outcome.scores
    eligible = scores["persons"] >= 10
    assert len(internal["work_list"]) == (eligible & (scores["fails"] != "")).sum()
    for row in internal["before"]:
        mine = scores[eligible & (scores["attribute"] == row["attribute"])]
        assert row["eligible"] == len(mine)
        assert row["passing"] == (mine["fails"] == "").sum()
        assert row["fails"]["t_max"] == mine["fails"].str.contains("t_max").sum()
    assert [r["failing"] for r in internal["final"]] == [0, 0]
    assert len(internal["rounds"]) == len(outcome.rounds)
    assert internal["fate"]["suppress"] == outcome.release.metadata["not_published"]


def test_the_noise_floor_of_cells_that_fail_by_chance() -> None:
    scores = pd.DataFrame(
        {
            "cell_id": list("abc"),
            "attribute": "poi",
            "persons": 20,
            "distance": [0.30, 0.50, 0.1],
            "noise_floor": [0.28, 0.20, 0.3],
            "fails": ["t_max", "t_max", ""],
            "remedy": "publish",
            "final_remedy": None,
            "reference_scope": "ring:1",
            "effective_fine": 3.0,
            "top_value": "gym",
            "top_share": 0.5,
            "incidence": 0.5,
        }
    )
    none = pd.DataFrame()
    intake = pd.DataFrame({"reason": ["read"], "rows": [60]})
    work = Work(scores, scores, none, none, intake, {"title": "t", "policy": {"gates": {"t_max": 0.25}}})
    found = internal_findings(work)
    assert (found["noise_floor"][0]["fail_t"], found["noise_floor"][0]["fail_t_by_chance"]) == (2, 1)
    assert found["noise_floor"][0]["median"] == 0.28
    assert found["released"] is None
    assert found["thresholds"][0]["against"] == "a reference that this file does not name"


def test_the_work_list_begins_with_the_surest(made: Folder) -> None:
    rows = work_list(made[0].scores)
    assert rows["top_share"].is_monotonic_decreasing
    assert (rows["fails"] != "").all()
    assert not rows["fails"].str.contains("k_min").any()


def test_names_stay_names(made: Folder) -> None:
    outcome, folder = made
    release = outcome.release
    attributes = [{**release.metadata["attributes"][0], "column": NASTY}]
    renamed = {n: n.replace("poi_category", NASTY) for n in release.cells.columns}
    counts = release.counts.assign(attribute=NASTY, value=NASTY)
    texts = dict.fromkeys(("title", "abstract", "licence", "note", "run"), NASTY)
    nasty = dataclasses.replace(
        release,
        cells=release.cells.rename(columns=renamed),
        counts=counts,
        reference=release.reference.assign(attribute=NASTY),
        metadata={**release.metadata, **texts, "keywords": [NASTY], "attributes": attributes},
    )
    pages = [report_page(*findings_of(nasty)).html()]
    work = read_work(folder / "work.gpkg")
    scores = work.scores.assign(attribute=NASTY, top_value=NASTY)
    intake = pd.DataFrame({"reason": [NASTY], "rows": [1]})
    work = dataclasses.replace(
        work, scores=scores, final_scores=scores, intake=intake, metadata=nasty.metadata
    )
    pages.append(report_page(*findings_of(work)).html())
    for page in pages:
        assert "<img src=x" not in page
        assert "<script" not in page
        assert page.count("</style>") == 1
        for data in re.findall(r"base64,([^\"]+)", page):
            assert "<img" not in base64.b64decode(data).decode()


def test_the_page_asks_for_nothing(made: Folder) -> None:
    _, folder = made
    for name in ("public", "internal"):
        page = (folder / f"{name}.html").read_text(encoding="utf-8")
        assert "default-src &#x27;none&#x27;" in page
        assert "script-src" not in page
        assert not re.search(r"(src|href)=\"(?!data:|#)", page)
        assert " style=" not in page
        assert not re.search(r"url\(", page)


def test_images_have_words(made: Folder) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib, the extra 'map'")
    page = (made[1] / "internal.html").read_text(encoding="utf-8")
    alts = re.findall(r'<img alt="([^"]+)"', page)
    assert len(alts) == 4
    assert alts[0].startswith("Before")
    assert alts[1].startswith("After")


def test_without_matplotlib_it_says_so_and_sketches_the_map(
    made: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geodiv.figures.drawable", lambda: False)
    monkeypatch.setattr("geodiv.report.drawable", lambda: False)
    page = report_page(*findings_of(made[0].release)).html()
    assert "matplotlib is not installed" in page
    assert page.count("<figure>") == 1
    assert 'aria-label="Map of' in page


def test_an_empty_release_and_one_without_places_have_reports() -> None:
    rows = [(f"p{i}", "c-1", value) for i in range(12) for value in ("shop", "food", "school")]
    visits = pd.DataFrame(rows, columns=["who", "cell", "poi"])
    table = gd.tabulate(visits, grid=gd.ColumnGrid("cell"), person="who", attributes=[gd.Nominal("poi")])
    for k_min in (10, 13):
        release = gd.enforce(table, gd.Policy(k_min=k_min, l_min=3, residual=False)).release
        page = report_page(*findings_of(release)).html()
        assert not isinstance(release.cells, gpd.GeoDataFrame)
        assert ("<b>1</b>published zones" in page) == (k_min == 10)


@pytest.mark.parametrize("suffix", [".geojson", ".csv", ".parquet"])
def test_other_formats_have_reports_as_far_as_they_carry(made: Folder, suffix: str, tmp_path: Path) -> None:
    made[0].release.to_file(tmp_path / f"r{suffix}")
    write_report(gd.read_release(tmp_path / f"r{suffix}"), tmp_path / "r.html")
    found = json.loads((tmp_path / "r.html.json").read_text())
    assert found["released"]["zones"] == len(made[0].release.cells)
    assert found["not_carried"]


# files and verbs


def test_the_twin_never_takes_the_name_of_a_release() -> None:
    assert twin("release.html").name == "release.html.json"


def test_a_work_file_is_told_from_a_release(made: Folder, tmp_path: Path) -> None:
    _, folder = made
    assert is_work(folder / "work.gpkg")
    assert not is_work(folder / "release.gpkg")
    with pytest.raises(gd.SourceError, match="expected a work file"):
        read_work(folder / "release.gpkg")
    with pytest.raises(gd.SourceError, match="no such file"):
        read_work(tmp_path / "none.gpkg")
    again = read_work(folder / "work.gpkg")
    assert again.scores["fails"].tolist() == made[0].scores["fails"].tolist()


@pytest.fixture
def geodiv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: cli.run([str(a) for a in arguments])


def test_verbs(
    made: Folder, geodiv: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, folder = made
    assert geodiv("report", folder / "release.gpkg", "-o", "a.html") == 0
    assert "public" in capsys.readouterr().out
    assert geodiv("report", folder / "work.gpkg", "-o", "b.html") == 0
    assert "INTERNAL" in capsys.readouterr().out
    assert (tmp_path / "a.html").read_bytes() == (folder / "public.html").read_bytes()
    assert (tmp_path / "b.html.json").read_bytes() == (folder / "internal.html.json").read_bytes()
    assert geodiv("report", folder / "work.gpkg", "-o", "a.html") == 2
    assert geodiv("report", CITY / "visits.parquet", "-o", "c.html") == 3
    assert geodiv("report", "none.gpkg", "-o", "c.html") == 3
    assert "Traceback" not in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "a.html.json", "b.html", "b.html.json"]


def test_enforce_writes_the_public_report_too(
    made: Folder, geodiv: Callable[..., int], tmp_path: Path
) -> None:
    command = (
        "enforce",
        CITY / "visits.parquet",
        "-p",
        CITY / "policy.toml",
        "-o",
        "r.gpkg",
        "--report",
        "r.html",
    )
    assert geodiv(*command) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.gpkg", "r.html", "r.html.json", "r.json"]
    assert "PUBLIC" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert geodiv(*command[:-1], "r.gpkg") == 2


def test_scores_alone_have_an_internal_report(geodiv: Callable[..., int], tmp_path: Path) -> None:
    assert geodiv("score", CITY / "visits.parquet", "-p", CITY / "policy.toml", "-o", "w.gpkg") == 0
    assert geodiv("report", "w.gpkg", "-o", "w.html") == 0
    found = sections((tmp_path / "w.html").read_text(encoding="utf-8"))
    assert "scores alone" in found["released"]
    assert "final" not in found
    assert "0.3" in found["thresholds"]
    assert "ring of order 1" in found["thresholds"]


def test_a_page_replaces_nothing_unasked(tmp_path: Path) -> None:
    page = Page("t", "b")
    page.write(tmp_path / "a.html")
    with pytest.raises(gd.UsageError, match="exists"):
        page.write(tmp_path / "a.html")
    page.write(tmp_path / "a.html", overwrite=True)


def test_findings_are_plain(made: Folder) -> None:
    def check(value: Any) -> None:
        if isinstance(value, dict):
            assert all(isinstance(key, str) for key in value)
            [check(inner) for inner in value.values()]
        elif isinstance(value, list):
            [check(inner) for inner in value]
        else:
            assert value is None or type(value) in (str, int, float, bool), type(value)

    check(public_findings(made[0].release))
    check(internal_findings(read_work(made[1] / "work.gpkg")))
