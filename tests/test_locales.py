"""The locale of whoever runs geodiv changes no byte and no number: with locales that are really installed."""

from __future__ import annotations

import locale
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from test_determinism import files

import geodiv as gd

LOCALES = ("de_DE.UTF-8", "tr_TR.UTF-8", "de_DE.ISO-8859-1")
"""A decimal comma; letters whose cases differ (i, I); a terminal that does not hold every letter."""
ROOT = Path(gd.__file__).parent.parent


def installed(name: str) -> bool:
    former = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, name)
    except locale.Error:
        return False
    finally:
        locale.setlocale(locale.LC_ALL, former)
    return True


@pytest.fixture(params=LOCALES)
def other(request: pytest.FixtureRequest) -> str:
    """The name of a locale."""
    if not installed(request.param):
        pytest.skip(f"the locale {request.param} is not installed (.ci/locales.sh installs it)")
    return str(request.param)


def test_every_file_is_the_same(other: str, tmp_path: Path) -> None:
    first = files(tmp_path / "c", LC_ALL="C", PYTHONUTF8="0")
    second = files(tmp_path / "o", LC_ALL=other, PYTHONUTF8="0")
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []


def test_numbers_and_names_are_read_and_told_the_same(other: str, tmp_path: Path) -> None:
    values = ("\u0130I\u0131i", "\u65e5\u672c", "Caf\u00e9")
    spots = [(f"p{i}", 16.37 + 0.02 * spot, 48.25) for spot in range(3) for i in range(6)]
    frame = pd.DataFrame([(*spot, v) for spot in spots for v in values], columns=["who", "LON", "LAT", "poi"])
    frame.to_csv(tmp_path / "v.csv", index=False)
    command = [
        sys.executable,
        "-c",
        "import locale, sys; locale.setlocale(locale.LC_ALL, ''); import geodiv.cli; geodiv.cli.main()",
    ]
    told = {}
    for name in ("C.UTF-8", other):
        env = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": name, "PYTHONUTF8": "0"}
        output = f"{name}.gpkg"
        flags = [
            "--h3",
            "8",
            "--person",
            "who",
            "--attribute",
            "poi",
            "--k",
            "5",
            "--l",
            "2.5",
            "--t",
            "0.25",
        ]
        for arguments in (["enforce", "v.csv", *flags, "-o", output], ["audit", output], ["init", "v.csv"]):
            done = subprocess.run([*command, *arguments], cwd=tmp_path, env=env, capture_output=True)
            assert done.returncode == 0, done.stderr
            told.setdefault(arguments[0], []).append(done.stdout)
    assert set(gd.read_release(tmp_path / f"{other}.gpkg").counts["value"]) == set(values)
    for first, second in told.values():
        shown = first.decode()
        if "8859" in other:  # what its terminal cannot show is an escape
            shown = shown.encode("latin-1", "backslashreplace").decode("latin-1")
        assert second.decode("latin-1" if "8859" in other else "utf-8") == shown
