"""Sweeps: each size as if it were counted alone, thresholds at one size, and the two commands."""

from __future__ import annotations

import csv
import json
from importlib import util
from pathlib import Path

import h3
import numpy as np
import pandas as pd
import pytest

import geodiv as gd
from geodiv import audits
from geodiv.audits.points import Points
from geodiv.cli import run
from geodiv.demo import fixtures

POLICY = gd.Policy(k_min=5, l_min=2, t_max=0.5, residual=False)
POI = gd.Nominal("poi")


@pytest.fixture(scope="module")
def city() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    n = 3000
    return pd.DataFrame(
        {
            "who": rng.integers(0, 200, n),
            "lon": 24.94 + rng.normal(0, 0.02, n),
            "lat": 60.17 + rng.normal(0, 0.01, n),
            "poi": rng.choice(["work", "gym", "shop", "bar"], n, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )


@pytest.mark.parametrize(
    ("grid", "sizes"),
    [(gd.H3Grid(8), [7, 8, 9]), (gd.SquareGrid(500, "EPSG:3067"), [500.0, 1000.0])],
    ids=["h3", "square"],
)
def test_each_size_is_what_counting_it_alone_gives(
    city: pd.DataFrame, grid: object, sizes: list[float]
) -> None:
    found = audits.sweep_sizes(
        city, sizes, grid=grid, person="who", attributes=[POI], policy=POLICY, lon="lon", lat="lat"
    )
    assert found["size"].tolist() == sizes
    for size, row in zip(sizes, found.itertuples(index=False), strict=True):
        alone = gd.H3Grid(int(size)) if isinstance(grid, gd.H3Grid) else gd.SquareGrid(size, "EPSG:3067")
        table = gd.tabulate(city, grid=alone, person="who", attributes=[POI], lon="lon", lat="lat")
        scores = gd.score(table, POLICY)
        eligible = scores[scores["persons"] >= 5]
        fails = eligible["fails"].str.split(",")
        assert (row.cells, row.eligible) == (len(scores), len(eligible))
        assert row.pass_k == pytest.approx(len(eligible) / len(scores))
        assert row.kept == pytest.approx(eligible["persons"].sum() / scores["persons"].sum())
        assert row.pass_l == pytest.approx(np.mean(["l_min" not in f for f in fails]))
        assert row.pass_t == pytest.approx(np.mean(["t_max" not in f for f in fails]))
        assert row.effective == pytest.approx(eligible["effective_fine"].median())
        assert row.noise_floor == pytest.approx(eligible["noise_floor"].median())
        release = gd.enforce(table, POLICY).release
        assert row.zones == len(release.cells)
        assert round(row.coverage, 2) == release.metadata["coverage"]


def test_coarser_cells_raise_k_and_not_always_diversity() -> None:
    """A district of one kind: any cell within it has L 1, whatever its size."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"who": range(600), "lon": 24.9, "lat": 60.2, "poi": "clinic"})
    frame["lon"] += rng.uniform(0, 0.02, 600)
    found = audits.sweep_sizes(
        frame,
        [9, 8, 7],
        grid=gd.H3Grid(8),
        person="who",
        attributes=[POI],
        policy=gd.Policy(k_min=30),
        remedies=False,
    )
    assert found["pass_k"].is_monotonic_increasing
    assert found["effective"].tolist() == pytest.approx([1, 1, 1])
    assert found["coverage"].isna().all()


def test_the_visits_are_reduced_once(city: pd.DataFrame) -> None:
    twice = pd.concat([city, city])
    points = Points.read(twice, grid=gd.H3Grid(9), person="who", attributes=[POI])
    assert points.table.num_rows == len(city.drop_duplicates())


def test_the_cell_of_a_point_is_not_always_the_child_of_its_coarser_cell(city: pd.DataFrame) -> None:
    """Why coarser cells are not added up from finer ones."""
    pairs = zip(city["lat"], city["lon"], strict=True)
    odd = sum(
        h3.cell_to_parent(h3.latlng_to_cell(y, x, 9), 8) != h3.latlng_to_cell(y, x, 8) for y, x in pairs
    )
    assert odd > 0


def test_thresholds_at_one_size(city: pd.DataFrame) -> None:
    table = gd.tabulate(city, grid=gd.H3Grid(8), person="who", attributes=[POI])
    found = audits.sweep_thresholds(table, POLICY, l_min=[1, 2, 3], t_max=[0.1, 1])
    assert found[["l_min", "t_max"]].values.tolist() == [[a, b] for a in (1, 2, 3) for b in (0.1, 1)]
    assert (found.loc[found["t_max"] == 1, "pass_t"] == 1).all()
    assert (found.loc[found["l_min"] == 1, "pass_l"] == 1).all()
    by_l = found[found["t_max"] == 1]
    assert by_l["pass_l"].is_monotonic_decreasing
    assert (found["pass_all"] <= found[["pass_l", "pass_t"]].min(axis=1) + 1e-12).all()


def test_cell_ids_cannot_be_cut_anew() -> None:
    frame = pd.DataFrame({"who": [1], "cell": ["88196352e9fffff"], "poi": ["a"]})
    with pytest.raises(gd.UsageError, match="needs coordinates"):
        audits.sweep_sizes(
            frame, [7], grid=gd.H3Grid(8, column="cell"), person="who", attributes=[POI], policy=POLICY
        )


def test_the_command_writes_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    city, out = fixtures(), tmp_path / "sweep.csv"
    flags = ["sweep", str(city / "visits.parquet"), "-p", str(city / "policy.toml")]
    assert run([*flags, "--sizes", "7,8", "--no-remedies", "-o", str(out), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(shown) == 4
    assert [row["attribute"] for row in rows[:2]] == ["poi_category", "income_band"]
    assert rows[0]["coverage"] == ""
    assert run([*flags, "--sizes", "7", "-o", str(out)]) == 2
    assert "exists" in capsys.readouterr().err
    assert run([*flags, "--over-l", "2,3", "--no-remedies", "-o", str(tmp_path / "l.csv")]) == 0
    assert "l_min" in (tmp_path / "l.csv").read_text()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "--sizes"),
        (["--sizes", "seven"], "expected numbers"),
        (["--sizes", "7,8", "--over-t", "0.3"], "at one size"),
        (["--sizes", "7.5"], "whole numbers"),
    ],
)
def test_mistakes_are_usage_errors(
    flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    city = fixtures()
    call = [
        "sweep",
        str(city / "visits.parquet"),
        "-p",
        str(city / "policy.toml"),
        "-o",
        str(tmp_path / "s.csv"),
    ]
    assert run([*call, *flags]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "s.csv").exists()


def test_the_picture_or_a_hint_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    city = fixtures()
    call = [
        "sweep",
        str(city / "visits.parquet"),
        "-p",
        str(city / "policy.toml"),
        "--sizes",
        "7",
        "--no-remedies",
    ]
    call += ["-o", str(tmp_path / "s.csv"), "--plot"]
    if util.find_spec("matplotlib"):
        assert run([*call, str(tmp_path / "s.png")]) == 0
        assert (tmp_path / "s.png").read_bytes()[:4] == b"\x89PNG"
        assert run([*call, str(tmp_path / "s.bmp"), "--overwrite"]) == 2
        assert ".png" in capsys.readouterr().err
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    assert run([*call, str(tmp_path / "t.png"), "--overwrite"]) == 2
    assert "geodiv[map]" in capsys.readouterr().err


def sweep(frame: pd.DataFrame, sizes: list[float], **keywords: object) -> pd.DataFrame:
    options: dict[str, object] = {
        "grid": gd.H3Grid(8),
        "person": "who",
        "attributes": [POI],
        "policy": POLICY,
    }
    return audits.sweep_sizes(frame, sizes, **{**options, **keywords})  # type: ignore[arg-type]


def test_each_step_is_told_and_no_size_is_an_error(city: pd.DataFrame) -> None:
    told: list[tuple[str, int, int | None]] = []
    sweep(city, [7, 8], remedies=False, progress=lambda *step: told.append(step))
    assert [step for step in told if step[0] == "sweep"] == [("sweep", i, 2) for i in range(3)]
    table = gd.tabulate(city, grid=gd.H3Grid(8), person="who", attributes=[POI])
    told.clear()
    audits.sweep_thresholds(
        table, POLICY, l_min=[1, 2], remedies=False, progress=lambda *step: told.append(step)
    )
    assert [step for step in told if step[0] == "sweep"] == [("sweep", i, 2) for i in range(2)]
    with pytest.raises(gd.UsageError, match="at least one"):
        sweep(city, [])


def test_a_policy_may_follow_the_table(city: pd.DataFrame) -> None:
    sizes = [7, 8]
    asked: list[int] = []

    def policy(table: gd.Tabulation) -> gd.Policy:
        asked.append(len(table.cells))
        return POLICY

    found = sweep(city, sizes, policy=policy, remedies=False)
    assert asked == found["cells"].tolist()
    assert found.equals(sweep(city, sizes, remedies=False))


def test_sizes_that_are_no_resolution_and_grids_without_a_size(city: pd.DataFrame) -> None:
    with pytest.raises(gd.UsageError, match=r"whole numbers from 0 to 15, got 7\.5"):
        sweep(city, [7.5])
    with pytest.raises(gd.UsageError, match="h3 or square, got column"):
        audits.sweep.sized(gd.ColumnGrid("cell"), 7)
    with pytest.raises(gd.UsageError, match="called x, y or person"):
        sweep(city.rename(columns={"poi": "x"}), [7], attributes=[gd.Nominal("x")])


def test_where_the_remedies_do_not_converge_what_follows_them_is_nan() -> None:
    """A lone cell of one value: merging finds no neighbour, and nothing may be suppressed."""
    frame = pd.DataFrame(
        {"who": range(60), "lon": [24.9] * 30 + [25.9] * 30, "lat": 60.2, "poi": ["gym"] * 45 + ["bar"] * 15}
    )
    rules = gd.Policy(k_min=5, l_min=2, ladder=("merge",), residual=False)
    found = sweep(frame, [8], policy=rules)
    assert found[["coverage", "coverage_all", "zones", "rounds"]].isna().all(axis=None)
    assert found[["cells", "eligible", "pass_k"]].to_numpy().tolist() == [[2, 2, 1.0]]
    assert found["pass_l"].tolist() == [0.5]
