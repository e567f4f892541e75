"""The command line: results on standard output, messages on standard error, exit codes, and no traceback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import geopandas as gpd
import pandas as pd
import pyogrio
import pytest

import geodiv as gd
from geodiv import cli, demo
from geodiv.flags import run_flags, tables_of_flags

CITY = demo.fixtures()
ROOT = Path(gd.__file__).parent.parent
VISITS, POLICY = CITY / "visits.parquet", CITY / "policy.toml"
KEYS = [
    "cells",
    "zones",
    "persons",
    "rounds",
    "remedies",
    "not_published",
    "coverage",
    "reference",
    "dropped",
]

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


def small(folder: Path, persons: int = 12, **columns: Any) -> Path:
    """Visits of some persons, each at shop, food and school in one cell."""
    rows = [(f"p{i}", 0.01, 0.01, value) for i in range(persons) for value in ("shop", "food", "school")]
    frame = pd.DataFrame(rows, columns=["person_id", "lon", "lat", "poi"]).assign(**columns)
    frame.to_csv(folder / "visits.csv", index=False)
    return folder / "visits.csv"


FLAGS = ("--h3", 8, "--person", "person_id", "--attribute", "poi")


# demo


def test_demo_leaves_three_files_and_no_other_geopackage(geodiv: Run, tmp_path: Path) -> None:
    code, out, _ = geodiv("demo")
    assert code == 0
    assert sorted(p.name for p in (tmp_path / "geodiv-demo").iterdir()) == [
        "release.gpkg",
        "release.json",
        "work.gpkg",
    ]
    assert "release.gpkg" in out
    assert "QGIS" in out
    release = gd.read_release(tmp_path / "geodiv-demo" / "release.gpkg")
    assert set(release.cells["remedy"]) == {"publish", "publish_coarsened", "publish_merged"}
    assert release.metadata["not_published"] > 0
    assert release.metadata["run"] == POLICY.read_text(encoding="utf-8")


def test_demo_replaces_its_own_files_only(geodiv: Run, tmp_path: Path) -> None:
    assert geodiv("demo", "-o", "here")[0] == 0
    assert geodiv("demo", "-o", "here")[0] == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "release.gpkg").write_bytes(b"mine")
    code, _, err = geodiv("demo", "-o", "other")
    assert code == 2
    assert "not from a demo" in err
    assert (other / "release.gpkg").read_bytes() == b"mine"


def test_demo_tells_of_no_single_cell(geodiv: Run, tmp_path: Path) -> None:
    out = geodiv("demo")[1]
    work = pyogrio.read_dataframe(tmp_path / "geodiv-demo" / "work.gpkg", layer="cells", read_geometry=False)
    assert not [cell for cell in work["cell_id"] if cell in out]


# score


def test_score_writes_the_internal_layer(geodiv: Run, tmp_path: Path) -> None:
    code, out, _ = geodiv("score", VISITS, "-p", POLICY, "-o", "work.gpkg")
    assert code == 0
    assert "poi_category" in out
    cells = pyogrio.read_dataframe(tmp_path / "work.gpkg", layer="cells")
    scores = pyogrio.read_dataframe(tmp_path / "work.gpkg", layer="scores")
    assert len(scores) == 2 * len(cells)
    assert scores["final_remedy"].isna().all()
    assert scores["zone_id"].isna().all()
    assert {"cell_id", "persons", "remedy", "final_remedy", "zone_id", "poi_category_fails"} <= set(
        cells.columns
    )


def test_score_says_the_same_to_machines(geodiv: Run) -> None:
    figures = json.loads(geodiv("score", VISITS, "-p", POLICY, "--json")[1])
    scores = gd.read_run(POLICY).score(VISITS)
    assert figures["cells"] == scores["cell_id"].nunique()
    rows = scores[(scores["attribute"] == "poi_category") & ~scores["fails"].str.contains("k_min")]
    found = figures["attributes"]["poi_category"]
    assert found["passing"] == (rows["fails"] == "").sum()
    assert found["fails"]["l_min"] == rows["fails"].str.split(",").map(lambda names: "l_min" in names).sum()
    assert figures["dropped"] == {"no person": 3, "no coordinate": 3, "out of range": 2}


def test_check_exits_1_when_a_cell_fails(geodiv: Run, tmp_path: Path) -> None:
    visits = small(tmp_path)
    assert geodiv("score", visits, *FLAGS, "--k", 10, "--l", 3, "--check")[0] == 0
    assert geodiv("score", visits, *FLAGS, "--k", 13, "--check")[0] == 1
    assert geodiv("score", visits, *FLAGS, "--incidence", 0.9, "--check")[0] == 1
    assert geodiv("score", visits, *FLAGS, "--incidence", 0.9)[0] == 0


def test_notes_that_help_stand_on_standard_error(geodiv: Run, tmp_path: Path) -> None:
    _, out, err = geodiv("score", small(tmp_path), *FLAGS, "--k", 5, "--json")
    assert "geodiv: note: no gate looks at 'poi'" in err
    assert "geodiv: note: k_min = 5" in err
    assert len(json.loads(out)["advice"]) == 2


# enforce


def test_enforce_writes_what_run_enforce_gives(geodiv: Run, tmp_path: Path) -> None:
    code, out, err = geodiv("enforce", VISITS, "-p", POLICY, "-o", "r.gpkg", "--work", "w.gpkg", "--json")
    assert code == 0
    assert err == ""
    figures = json.loads(out)
    assert list(figures) == KEYS
    release = gd.read_run(POLICY).enforce(VISITS).release
    assert figures == json.loads(json.dumps({key: release.metadata[key] for key in KEYS}))
    assert list(figures["remedies"]) == ["publish", "publish_coarsened", "publish_merged"]
    assert sum(figures["remedies"].values()) == figures["zones"] == len(release.cells)
    assert json.loads((tmp_path / "r.json").read_text())["zones"] == figures["zones"]
    written = gd.read_release(tmp_path / "r.gpkg")
    pd.testing.assert_frame_equal(written.counts, release.counts, check_dtype=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.gpkg", "r.json", "w.gpkg"]


def test_enforce_tells_of_no_unpublished_cell(geodiv: Run, tmp_path: Path) -> None:
    code, out, err = geodiv(
        "enforce", VISITS, "-p", POLICY, "-o", "r.gpkg", "--work", "w.gpkg", "--progress", "json"
    )
    assert code == 0
    cells = pyogrio.read_dataframe(tmp_path / "w.gpkg", layer="cells", read_geometry=False)
    hidden = cells["cell_id"][cells["zone_id"].isna()]
    assert len(hidden)
    text = out + err + (tmp_path / "r.json").read_text()
    assert not [cell for cell in hidden if cell in text]


def test_an_empty_release_is_written_and_exits_1(geodiv: Run, tmp_path: Path) -> None:
    code, out, _ = geodiv("enforce", small(tmp_path), *FLAGS, "--k", 99, "-o", "r.gpkg")
    assert code == 1
    assert "Nothing is published" in out
    assert len(gd.read_release(tmp_path / "r.gpkg").cells) == 0


def test_not_converged_exits_4_and_writes_nothing(geodiv: Run, tmp_path: Path) -> None:
    code, out, err = geodiv("enforce", VISITS, "-p", POLICY, "--ladder", "recode", "-o", "r.gpkg")
    assert code == 4
    assert out == ""
    assert "suppress" in err
    assert list(tmp_path.iterdir()) == []


def test_flags_alone_are_echoed_as_a_run(geodiv: Run, tmp_path: Path) -> None:
    taxonomy = CITY / "poi_taxonomy.csv"
    code, _, err = geodiv(
        "enforce", VISITS, "--h3", 8, "--person", "person_id", "--attribute", "poi_category", "--taxonomy", taxonomy,
        "--missing", "", "--missing", "Unknown", "--on-bad-rows", "skip", "--k", 10, "--l", 3, "--t", 0.3,
        "--shift", 0.3, "--incidence", 0.8, "--ring", 1, "--max-ring", 3, "--min-persons", 30, "-o", "r.gpkg",
    )  # fmt: skip
    assert code == 0, err
    (tmp_path / "again.toml").write_text(
        gd.read_release(tmp_path / "r.gpkg").metadata["run"], encoding="utf-8"
    )
    assert geodiv("enforce", VISITS, "-p", "again.toml", "-o", "again.gpkg")[0] == 0
    first, second = (gd.read_release(tmp_path / name) for name in ("r.gpkg", "again.gpkg"))
    pd.testing.assert_frame_equal(first.counts, second.counts)


def test_a_flag_wins_over_the_file_and_the_text_says_so(geodiv: Run, tmp_path: Path) -> None:
    code, *_ = geodiv("enforce", VISITS, "-p", POLICY, "--k", 25, "-o", "r.gpkg")
    assert code == 0
    release = gd.read_release(tmp_path / "r.gpkg")
    assert release.cells["persons"].min() >= 25
    assert "k_min = 25" in release.metadata["run"]


# flags


def tables(*arguments: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {}

    @click.command()
    @run_flags
    def command(**flags: Any) -> None:
        kept.update(tables_of_flags(flags, Path(".")))

    command.main([str(a) for a in arguments], standalone_mode=False)
    return kept


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--h3", 8), {"grid": {"kind": "h3", "resolution": 8}}),
        (("--h3", 8, "--cell-column", "hex"), {"grid": {"kind": "h3", "resolution": 8, "column": "hex"}}),
        (("--cell-column", "tract"), {"grid": {"kind": "column", "column": "tract"}}),
        (
            ("--square", 500, "--square-crs", "EPSG:3035"),
            {"grid": {"kind": "square", "size": 500.0, "crs": "EPSG:3035"}},
        ),
        (
            ("--zones", "z.gpkg", "--zones-id", "taz"),
            {"grid": {"kind": "zones", "path": "z.gpkg", "id": "taz"}},
        ),
        (("--attribute", "a", "--attribute", "b"), {"attribute": [{"column": "a"}, {"column": "b"}]}),
        (("--attribute", "a", "--taxonomy", "t.csv"), {"attribute": [{"column": "a", "taxonomy": "t.csv"}]}),
        (
            ("--attribute", "a", "--attribute", "b", "--taxonomy", "b=t.csv"),
            {"attribute": [{"column": "a"}, {"column": "b", "taxonomy": "t.csv"}]},
        ),
        (
            ("--ordinal", "x=lo, hi"),
            {"attribute": [{"column": "x", "kind": "ordinal", "order": ["lo", "hi"]}]},
        ),
        (
            ("--numeric", "x=-inf,0,9.5"),
            {"attribute": [{"column": "x", "kind": "numeric", "edges": [float("-inf"), 0.0, 9.5]}]},
        ),
        (("--ring", 2), {"reference": {"scope": "ring", "order": 2}}),
        (("--weights", "w.gal"), {"reference": {"scope": "weights", "graph": "w.gal"}}),
        (("--ladder", "merge,suppress"), {"remedies": {"ladder": ["merge", "suppress"]}}),
        (("--no-residual",), {"remedies": {"residual": False}}),
        ((), {}),
    ],
)
def test_flags_stand_for_tables(arguments: tuple[Any, ...], expected: dict[str, Any]) -> None:
    assert tables(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--h3", 8, "--square", 5, "--square-crs", "EPSG:3035"),
            "expected one grid, got '--h3', '--square'",
        ),
        (("--square", 500), "--square and --square-crs belong together"),
        (("--zones", "z.gpkg"), "--zones and --zones-id belong together"),
        (
            ("--attribute", "a", "--attribute", "b", "--taxonomy", "t.csv"),
            "expected COLUMN=FILE with one of 'a', 'b'",
        ),
        (("--ordinal", "x"), "expected COLUMN=VALUE"),
        (("--numeric", "x=0,many"), "expected numbers, got '0', 'many'"),
        (("--missing", "NA"), "--missing belongs to attributes"),
        (("--ring", 1, "--weights", "w.gal"), "expected one reference"),
    ],
)
def test_flags_that_do_not_fit_together(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(gd.UsageError) as caught:
        tables(*arguments)
    assert message in str(caught.value)


# messages and exit codes


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "Usage"),
        (("nonsense",), 2, "No such command 'nonsense'"),
        (("score",), 2, "Missing argument 'VISITS'"),
        (("enforce", "v.csv"), 2, "Missing option '-o'"),
        (("score", "v.csv", "--k", "ten"), 2, "is not a valid integer"),
        (("score", VISITS), 2, "expected -p policy.toml"),
        (("score", VISITS, "--h3", 8, "--attribute", "poi_category"), 2, "person"),
        (("score", VISITS, "--person", "person_id", "--attribute", "poi_category"), 2, "expected a grid"),
        (("score", VISITS, *FLAGS[2:], "--h3", 99), 2, "99"),
        (("score", VISITS, *FLAGS, "--t", 3), 2, "t_max: expected a number from 0 to 1"),
        (
            ("score", VISITS, "-p", POLICY, "--t", 3),
            2,
            "policy.toml, with the flags': t_max: expected a number",
        ),
        (("score", VISITS, "-p", "none.toml"), 3, "expected a policy file at 'none.toml'"),
        (("score", "none.parquet", "-p", POLICY), 3, "none.parquet"),
        (("score", VISITS, "-p", POLICY, "--person", "persn_id"), 3, "Did you mean 'person_id'?"),
        (("score", VISITS, "-p", POLICY, "--on-bad-rows", "error"), 3, "no person"),
        (("score", VISITS, "-p", POLICY, "--engine", "abacus"), 2, "engine"),
        (("enforce", VISITS, "-p", POLICY, "-o", "r.shp"), 2, "ends in .gpkg"),
        (("info", "none.gpkg"), 3, "none.gpkg"),
        (("init", "none.csv"), 3, "none.csv"),
        (("enforce", VISITS, "-p", POLICY, "-o", "no/folder/r.gpkg"), 3, "folder"),
    ],
)
def test_a_mistake_gives_one_message_and_an_exit_code(
    arguments: tuple[Any, ...], code: int, message: str, geodiv: Run, tmp_path: Path
) -> None:
    got, out, err = geodiv(*arguments)
    assert (got, out) == (code, "")
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_only_when_told(geodiv: Run, tmp_path: Path) -> None:
    target = tmp_path / "r.gpkg"
    target.write_bytes(b"mine")
    command = ("enforce", small(tmp_path), *FLAGS, "-o", target)
    code, _, err = geodiv(*command)
    assert code == 2
    assert "--overwrite" in err
    assert target.read_bytes() == b"mine"
    assert geodiv(*command, "--overwrite")[0] == 0
    assert len(gd.read_release(target).cells) == 1


def test_no_input_is_written_over(geodiv: Run, tmp_path: Path) -> None:
    visits = small(tmp_path)
    before = visits.read_bytes()
    for flags in (("--rejects", visits), ("-o", "w.gpkg", "--rejects", visits)):
        code, _, err = geodiv("score", visits, *FLAGS, *flags, "--overwrite")
        assert code == 2
        assert "read by this run" in err
    code, _, err = geodiv("enforce", visits, *FLAGS, "-o", "r.gpkg", "--work", "r.gpkg")
    assert code == 2
    assert "twice" in err
    assert visits.read_bytes() == before


def test_rejects(geodiv: Run, tmp_path: Path) -> None:
    code, *_ = geodiv("score", VISITS, "-p", POLICY, "--rejects", "rejects.csv")
    assert code == 0
    reasons = pd.read_csv(tmp_path / "rejects.csv")["reason"].value_counts().to_dict()
    assert reasons == {"no person": 3, "no coordinate": 3, "out of range": 2}


def test_progress_for_programs_is_json_lines_on_standard_error(geodiv: Run) -> None:
    code, out, err = geodiv("enforce", VISITS, "-p", POLICY, "-o", "r.gpkg", "--progress", "json", "--json")
    assert code == 0
    json.loads(out)
    lines = [json.loads(line) for line in err.splitlines()]
    assert lines
    for line in lines:
        assert list(line) == ["event", "stage", "done", "total"]
        assert line["event"] == "progress"
        assert 0 <= line["done"] <= max(line["total"], line["done"])


@pytest.mark.parametrize("mode", ["bar", "none", "auto"])
def test_other_progress_leaves_results_alone(mode: str, geodiv: Run, tmp_path: Path) -> None:
    code, out, _ = geodiv("score", small(tmp_path), *FLAGS, "--progress", mode, "--json")
    assert code == 0
    assert json.loads(out)["cells"] == 1


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_an_interrupt_is_quiet() -> None:
    code = (
        "import os, signal, sys; import geodiv.demo, geodiv.cli as cli;"
        "geodiv.demo.make_demo = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT);"
        "sys.exit(cli.run(['demo']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 128 + signal.SIGINT
    assert "Traceback" not in done.stderr


def test_it_is_installed_as_a_command_and_as_a_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "geodiv", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert gd.__version__ in done.stdout
    script = shutil.which("geodiv", path=str(Path(sys.executable).parent))
    if script is not None:
        again = subprocess.run(
            [script, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert again.stdout == done.stdout


# init


def test_init_writes_a_policy_that_runs(geodiv: Run, tmp_path: Path) -> None:
    code, out, err = geodiv("init", VISITS)
    assert (code, err) == (0, "")
    assert 'person = "person_id"' in out
    assert 'column = "poi_category"' in out
    assert '"clinic"' in out
    assert 'missing = ["", "Unknown"]' in out
    assert str(tmp_path) not in out
    text = out.replace('on_bad_rows = "error"', 'on_bad_rows = "skip"')
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    assert geodiv("enforce", VISITS, "-p", "policy.toml", "-o", "r.gpkg")[0] == 0


def test_init_suggests_larger_cells_for_a_larger_k(geodiv: Run) -> None:
    sizes = []
    for k in (3, 10, 100):
        text = geodiv("init", VISITS, "--k", k)[1]
        sizes.append(
            next(int(line.split()[2]) for line in text.splitlines() if line.startswith("resolution"))
        )
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_init_guesses_markers_and_lists_no_rare_value(geodiv: Run, tmp_path: Path) -> None:
    price = [1, 2, 3] * 11 + [-999] * 3
    visits = small(tmp_path, price=price, note=["usual"] * 30 + ["rare secret"] * 2 + ["n/a"] * 4)
    out = geodiv("init", visits)[1]
    assert 'missing = ["-999"]' in out
    assert 'missing = ["n/a"]' in out
    assert '"usual"' in out
    assert "rare secret" not in out
    (tmp_path / "policy.toml").write_text(out, encoding="utf-8")
    gd.read_run(tmp_path / "policy.toml")


def test_init_offers_attributes_that_work_once_they_are_switched_on(geodiv: Run, tmp_path: Path) -> None:
    visits = small(tmp_path, price=[1, 2, 3] * 11 + [-999] * 3, spent=[i / 2 for i in range(36)])
    text = geodiv("init", visits)[1]
    blocks = [
        "\n".join(line.removeprefix("# ") for line in block.splitlines() if not line.startswith("# A"))
        if "# [[attribute]]" in block
        else block
        for block in text.split("\n\n")
    ]
    (tmp_path / "policy.toml").write_text("\n\n".join(blocks), encoding="utf-8")
    run = gd.read_run(tmp_path / "policy.toml")
    assert {a.column for a in run.attributes} == {"poi", "price", "spent"}
    assert isinstance(next(a for a in run.attributes if a.column == "spent"), gd.Numeric)


def test_init_finds_coordinates_of_an_end_and_asks_for_their_crs(geodiv: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"PersonId": [1, 2], "xCoordOrigin": [6e5, 6e5], "yCoordOrigin": [2e5, 2e5], "activity": ["a", "b"]}
    )
    frame = frame.assign(xCoordDestination=6.1e5, yCoordDestination=2.1e5)
    frame.to_parquet(tmp_path / "trips.parquet")
    text = geodiv("init", "trips.parquet")[1]
    assert 'lon = "xCoordDestination"\nlat = "yCoordDestination"\ncrs = ""' in text
    text = geodiv("init", "trips.parquet", "--crs", "EPSG:21781")[1]
    assert 'crs = "EPSG:21781"' in text
    assert "suggested for k_min" in text


def test_init_without_a_person_says_what_to_fill_in(geodiv: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"who knows": [1, 2], "hex": ["8828308281fffff", "8828308283fffff"], "purpose": ["a", "b"]}
    )
    frame.to_parquet(tmp_path / "visits.parquet")
    out = geodiv("init", "visits.parquet", "-o", "policy.toml")[1]
    assert out == ""
    text = (tmp_path / "policy.toml").read_text(encoding="utf-8")
    assert 'person = ""' in text
    assert '"who knows"' in text
    assert "--person COLUMN" in text
    assert 'person = "who knows"' in geodiv("init", "visits.parquet", "--person", "who knows")[1]
    assert 'column = "hex"' in text
    assert "resolution = 8" in text
    assert geodiv("init", "visits.parquet", "-o", "policy.toml")[0] == 2


def test_init_calls_a_layer_of_several_by_its_name(geodiv: Run, tmp_path: Path) -> None:
    visits = pd.read_parquet(VISITS).dropna(subset=["lon", "lat"]).head(50)
    points = gpd.GeoDataFrame(
        visits[["person_id"]], geometry=gpd.points_from_xy(visits["lon"], visits["lat"]), crs=4326
    )
    for layer in ("a/b", "c"):
        points.to_file(tmp_path / "v.gpkg", layer=layer)
    for layer in ("a/b", "c"):
        text = geodiv("init", str(tmp_path / "v.gpkg"), "--layer", layer)[1]
        assert text.startswith(f"# A policy for v.gpkg (layer '{layer}'), written by")


# info


def test_the_demo_tells_programs_what_the_release_says(geodiv: Run) -> None:
    code, out, _ = geodiv("demo", "--json")
    about = json.loads(geodiv("info", "geodiv-demo/release.json", "--json")[1])
    assert (code, json.loads(out)) == (0, {key: about[key] for key in KEYS})


def test_info_tells_what_a_file_is(geodiv: Run, tmp_path: Path) -> None:
    geodiv("demo", "-o", ".")
    for file, what, word in (
        ("release.gpkg", "release", "public"),
        ("release.json", "release", "public"),
        ("work.gpkg", "work", "INTERNAL"),
        (VISITS, "visits", "person_id"),
        (POLICY, "policy", "valid"),
    ):
        code, out, _ = geodiv("info", file)
        assert code == 0
        assert word in out
        found = json.loads(geodiv("info", file, "--json")[1])
        assert found["what"] == what


def test_info_says_the_gates_the_reference_and_the_taxonomy(geodiv: Run) -> None:
    geodiv("demo", "-o", ".")
    ring = "the ring of order 1 around it (up to order 3 for 30 persons, else the mix of the whole area)"
    for file in ("release.gpkg", "release.json", "work.gpkg", POLICY):
        out = geodiv("info", file)[1]
        assert "poi_category: k_min 10, l_min 3, t_max 0.3, shift_max 0.3, incidence_max 0.8\n" in out
        assert "income_band: k_min 10, l_min 2, t_max 0.4" in out
        assert f"Distance, shift and lift are to {ring}.\n" in out
        if file != POLICY:
            assert "  taxonomy poi_taxonomy 2026-11 (7b7125e0b855)\n" in out
            assert "Note: Streets where" in out


def test_info_says_what_a_format_does_not_carry(geodiv: Run) -> None:
    geodiv("enforce", VISITS, "-p", POLICY, "-o", "r.parquet")
    assert "Not carried by this file: counts, taxonomy, reference.\n" in geodiv("info", "r.parquet")[1]
    geodiv("enforce", VISITS, "-p", POLICY, "-o", "r.gpkg", "--overwrite")
    assert "Not carried" not in geodiv("info", "r.gpkg")[1]


def test_info_of_a_release_says_what_enforce_said(geodiv: Run) -> None:
    figures = json.loads(geodiv("enforce", VISITS, "-p", POLICY, "-o", "r.gpkg", "--json")[1])
    found = json.loads(geodiv("info", "r.gpkg", "--json")[1])
    assert {key: found[key] for key in KEYS} == figures


def test_the_text_of_a_score_tells_of_the_largest_districts_only() -> None:
    from geodiv.summary import MOST_DISTRICTS, score_text

    district = {
        "n_cells": 3,
        "attribute": "a",
        "top_value": None,
        "gates": "t_max",
        "cause": "?",
        "cells": "x y z",
    }
    figures = {"cells": 90, "eligible": 90, "failing": 60, "attributes": {}, "dropped": {}}
    text = score_text({**figures, "districts": [district] * (MOST_DISTRICTS + 2)}, 10)
    assert text.count("A whole district fails") == MOST_DISTRICTS
    assert "2 smaller districts fail too" in text


def test_one_cell_is_one_cell(geodiv: Run, tmp_path: Path) -> None:
    rows = "".join(f"{i},x,{'ab'[i > 8]}\n" for i in range(10))
    (tmp_path / "one.csv").write_text(f"person,cell,poi\n{rows}", encoding="utf-8")
    flags = ("--cell-column", "cell", "--person", "person", "--attribute", "poi", "--l", "2")
    code, shown, _ = geodiv("score", tmp_path / "one.csv", *flags)
    assert code == 0
    assert shown.startswith(
        "1 cell with visits, 1 of them with at least 10 persons (k_min).\nOf these, 1 gives something"
    )
