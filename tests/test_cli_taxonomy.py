"""``geodiv taxonomy check | suggest | diff`` on the command line."""

from __future__ import annotations

import json
import re
import sqlite3
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from crowds import visits
from street import APPOINTMENT, HEALTH, VISITS

import geodiv as gd
from geodiv.cli import run
from geodiv.taxonomies.suggest import taxonomy_csv


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    visits(VISITS).to_parquet(tmp_path / "visits.parquet")
    for taxonomy in (HEALTH, APPOINTMENT):
        (tmp_path / f"{taxonomy.name}.csv").write_text(taxonomy_csv(taxonomy), encoding="utf-8")
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = run([str(a) for a in arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def flags(folder: Path, taxonomy: str | None = None) -> list[Any]:
    given = [
        folder / "visits.parquet",
        "--cell-column",
        "cell",
        "--person",
        "person",
        "--attribute",
        "activity",
    ]
    given += ["--k", 10, "--l", 4, "--progress", "none"]
    return given + (["--taxonomy", folder / f"{taxonomy}.csv"] if taxonomy else [])


def test_check_says_what_clears(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown, _ = call(capsys, "taxonomy", "check", *flags(folder, "health"))
    assert code == 0
    assert "level1 clears 0% of the cells that fail" in shown
    code, shown, _ = call(capsys, "taxonomy", "check", *flags(folder, "appointment"), "--json")
    found = json.loads(shown)
    assert (found["levels"][0]["cleared"], found["taxonomy"]["digest"]) == (2, APPOINTMENT.digest)
    assert found["labels"][0]["label"] == "appointment"


def test_check_names_values_that_the_taxonomy_lacks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (folder / "health.csv").read_text().replace("dentist,health\n", "")
    (folder / "health.csv").write_text(text)
    code, shown, _ = call(capsys, "taxonomy", "check", *flags(folder, "health"))
    assert code == 0
    assert "values without a parent: 'dentist'" in shown


def test_check_draws(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs the map extra")
    picture = folder / "check.png"
    assert call(capsys, "taxonomy", "check", *flags(folder, "appointment"), "--plot", picture)[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, _, said = call(capsys, "taxonomy", "check", *flags(folder, "appointment"), "--plot", picture)
    assert (code, "exists" in said) == (2, True)
    wrong = folder / "check.bmp"
    code, _, said = call(capsys, "taxonomy", "check", *flags(folder, "appointment"), "--plot", wrong)
    assert (code, "ends in .png, .svg, .pdf" in said, wrong.exists()) == (2, True, False)


def test_check_draws_whole_cells_to_both_sides_of_nought(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mpl = pytest.importorskip("matplotlib", reason="the plot needs the map extra")
    picture = folder / "check.svg"
    with mpl.rc_context({"svg.fonttype": "none"}):
        assert call(capsys, "taxonomy", "check", *flags(folder, "appointment"), "--plot", picture)[0] == 0
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))
    numbers = [text for text in texts if re.fullmatch(r"[\W_]?[\d.]+", text)]
    assert len(numbers) > 2
    assert all(text.isdecimal() for text in numbers), numbers


def test_a_taxonomy_beside_a_policy_is_that_of_its_attribute(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = folder / "policy.toml"
    policy.write_text(
        '[visits]\nperson = "person"\n[grid]\nkind = "column"\ncolumn = "cell"\n[gates]\nl_min = 4\n'
        '[[attribute]]\ncolumn = "activity"\ntaxonomy = "health.csv"\ntaxonomy_version = "3"\nmissing = ["?"]\n',
        encoding="utf-8",
    )
    call_check = ["taxonomy", "check", folder / "visits.parquet", "-p", policy, "--json"]
    for given in (folder / "appointment.csv", f"activity={folder / 'appointment.csv'}"):
        code, shown, _ = call(capsys, *call_check, "--taxonomy", given)
        assert code == 0
        found = json.loads(shown)["taxonomy"]
        assert (found["digest"], found["version"]) == (APPOINTMENT.digest, "")
    work = folder / "release.gpkg"
    assert call(capsys, "enforce", *call_check[2:], "--taxonomy", given, "-o", work)[0] in (0, 1)
    run_text = gd.read_release(work).metadata["run"]
    assert "appointment.csv" in run_text
    assert "health.csv" not in run_text
    assert 'missing = ["?"]' in run_text
    policy.write_text(
        policy.read_text(encoding="utf-8") + '[[attribute]]\ncolumn = "other"\n', encoding="utf-8"
    )
    code, _, said = call(capsys, *call_check, "--taxonomy", folder / "appointment.csv")
    assert code == 2
    assert "expected COLUMN=FILE with one of 'activity', 'other'" in said


def test_a_taxonomy_needs_an_attribute(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_check = [
        "taxonomy",
        "check",
        folder / "visits.parquet",
        "--person",
        "person",
        "--cell-column",
        "cell",
    ]
    code, _, said = call(capsys, *call_check, "--taxonomy", folder / "health.csv")
    assert code == 2
    assert "--taxonomy belongs to an attribute, and there is none: give --attribute or a policy" in said


def test_a_release_without_a_taxonomy_has_none_to_compare(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = folder / "plain.gpkg"
    call(capsys, "enforce", *flags(folder), "-o", release)
    code, _, said = call(capsys, "taxonomy", "diff", folder / "health.csv", release)
    assert code == 3
    assert "expected a release with a taxonomy, and none of its attributes has one" in said


def test_a_plot_without_matplotlib_says_what_to_install(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    code, _, said = call(capsys, "taxonomy", "check", *flags(folder, "health"), "--plot", folder / "x.png")
    assert (code, "pip install 'geodiv[map]'" in said) == (2, True)


def test_suggest_writes_a_taxonomy_that_clears(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "new.csv"
    code, shown, _ = call(capsys, "taxonomy", "suggest", *flags(folder), "-o", out)
    assert code == 0
    assert "2 cells fail; 33.3% of the persons" in shown
    taxonomy = gd.Taxonomy.read(out)
    assert set(taxonomy.values) == {v for cell in VISITS.values() for v in cell}
    code, shown, _ = call(capsys, "taxonomy", "check", *flags(folder, "new"), "--json")
    assert json.loads(shown)["levels"][0]["cleared"] == 2


def test_suggest_keeps_wishes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "new.csv"
    wishes = [
        "--join",
        "cafe,shop",
        "--apart",
        "clinic,pharmacy+dentist",
        "--name",
        "errands=cafe",
        "--most",
        4,
    ]
    code, shown, _ = call(capsys, "taxonomy", "suggest", *flags(folder), "-o", out, *wishes, "--json")
    assert code == 0
    at = dict(gd.Taxonomy.read(out).rows)
    assert at["cafe"] == at["shop"] == "errands"
    assert at["clinic"] not in (at["pharmacy"], at["dentist"])
    assert json.loads(shown)["chosen"]["digest"] == gd.Taxonomy.read(out).digest
    code, _, said = call(
        capsys, "taxonomy", "suggest", *flags(folder), "-o", folder / "x.csv", "--labels", 99
    )
    assert (code, "none of the taxonomies found has that many" in said) == (2, True)
    code, _, said = call(
        capsys, "taxonomy", "suggest", *flags(folder), "-o", folder / "x.csv", "--name", "errands"
    )
    assert (code, "expected LABEL=VALUE" in said) == (2, True)


def test_suggest_writes_nothing_where_nothing_helps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(f) if f != 4 else "7" for f in flags(folder)]
    code, shown, _ = call(capsys, "taxonomy", "suggest", *given, "-o", folder / "new.csv")
    assert (code, "nothing was written" in shown) == (1, True)
    assert not (folder / "new.csv").exists()


def test_diff_of_files_and_of_a_release(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown, _ = call(capsys, "taxonomy", "diff", folder / "health.csv", folder / "appointment.csv")
    assert code == 0
    assert "moved: clinic, level1: health -> appointment" in shown
    assert "cannot be compared" in shown
    assert (
        call(capsys, "taxonomy", "diff", folder / "health.csv", folder / "appointment.csv", "--check")[0] == 1
    )
    release = folder / "release.gpkg"
    assert call(capsys, "enforce", *flags(folder, "appointment"), "-o", release, "--no-residual")[0] == 0
    code, shown, _ = call(
        capsys, "taxonomy", "diff", release, folder / "appointment.csv", "--check", "--json"
    )
    assert (code, json.loads(shown)["same"]) == (0, True)
    code, _, said = call(
        capsys, "taxonomy", "diff", release, folder / "appointment.csv", "--of", "activities"
    )
    assert (code, "Did you mean 'activity'" in said) == (3, True)


def test_scores_say_which_taxonomy_they_are_under(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = folder / "work.gpkg"
    assert call(capsys, "score", *flags(folder, "appointment"), "-o", work)[0] == 0
    with sqlite3.connect(work) as database:
        texts = [row[0] for row in database.execute("select metadata from gpkg_metadata")]
    found = next(json.loads(t) for t in texts if t.startswith("{"))
    expected = {"name": "appointment", "version": "", "digest": APPOINTMENT.digest}
    assert found["attributes"][0]["taxonomy"] == expected
