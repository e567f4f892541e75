"""geodiv audit: what it prints and how it ends."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from people import with_counts

import geodiv as gd
from geodiv.cli import run
from geodiv.demo import fixtures, make_demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit") / "demo"
    make_demo(folder)
    return folder / "release.gpkg"


def test_the_demo_holds_against_everything(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    city = fixtures()
    call = ["audit", str(demo), "--visits", str(city / "visits.parquet"), "-p", str(city / "policy.toml")]
    assert run([*call, "--against", str(demo), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["failed"] is False
    assert {
        "attack",
        "readers",
        "recount",
        "truth",
        "members",
        "recheck",
        "cross_attribute",
        "difference",
    } <= set(found)
    assert run(call) == 0
    shown = capsys.readouterr().out
    assert "0 gates broken" in shown
    assert "best guess" in shown


def test_a_tampered_file_ends_with_1(demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = gd.read_release(demo)
    zone = made.cells[(made.cells["poi_category_level"] == 0) & (made.cells["persons"] > 30)].iloc[0]
    values = [label for label in made.metadata["attributes"][0]["levels"][0] if label != "(missing)"][:2]
    forged = with_counts(
        made, zone["cell_id"], {values[0]: int(zone["persons"]), values[1]: 3}, "poi_category"
    )
    forged.to_file(tmp_path / "forged.gpkg")
    assert run(["audit", str(tmp_path / "forged.gpkg")]) == 1
    shown = capsys.readouterr().out
    assert "l_min" in shown
    assert str(zone["cell_id"]) in shown
    city = fixtures()
    call = ["audit", str(tmp_path / "forged.gpkg"), "--visits", str(city / "visits.parquet")]
    assert run([*call, "-p", str(city / "policy.toml"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["recount"]["failed"]
    assert run(["audit", str(demo), "--against", str(tmp_path / "forged.gpkg")]) == 1


def test_other_thresholds_are_named(demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = gd.read_release(demo)
    policy = {**made.metadata["policy"], "gates": {**made.metadata["policy"]["gates"], "l_min": 2.0}}
    replace(made, metadata={**made.metadata, "policy": policy}).to_file(tmp_path / "other.gpkg")
    assert run(["audit", str(demo), "--against", str(tmp_path / "other.gpkg")]) == 1
    assert "NOT COMPARABLE: they differ in thresholds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [(["--visits", "x.csv"], "belong together"), (["--column", "facility"], "give --visits too")],
)
def test_mistakes_are_usage_errors(
    demo: Path, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", str(demo), *flags]) == 2
    assert message in capsys.readouterr().err


def test_what_is_no_release_is_unreadable(tmp_path: Path, demo: Path) -> None:
    assert run(["audit", str(tmp_path / "missing.gpkg")]) == 3
    assert run(["audit", str(demo.with_name("work.gpkg"))]) == 3
