"""A short, seeded run of the fuzzer on everything that reads a file; `tests/fuzz.py` is the long one."""

from __future__ import annotations

import os
from pathlib import Path

import fuzz
import pandas as pd
import pytest

import geodiv as gd

RUNS = int(os.environ.get("GEODIV_FUZZ_RUNS", "120"))


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_what_was_mutated_is_read_or_refused_in_one_line(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    crashes = fuzz.run([name], RUNS, seed=20261130)
    assert not crashes, capsys.readouterr().out


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_the_seeds_are_read(name: str) -> None:
    fuzz.prepare()
    target, seeds = fuzz.TARGETS[name]
    for data in seeds:
        if name in (
            "weights",
            "policy",
        ):  # one format of three; the fixture's policy names files that are not there
            assert fuzz.survives(target, data) is None
        else:
            target(data)


def test_the_fuzzer_tells_a_crash(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(data: bytes) -> None:
        raise KeyError("x")

    monkeypatch.setitem(fuzz.TARGETS, "broken", (broken, (b"a",)))
    assert fuzz.run(["broken"], 3, seed=1) == {"broken": 3}
    assert "KeyError" in capsys.readouterr().out


CRASHES = {
    "a header with a bare carriage return": b'who,lo"n\rlat",poi\nx,1,2\n',
    "a header longer than a field may be": b"who,lon,lat,poi," + b"a" * 200_000 + b"\n1,2,3,4,5\n",
}
"""Inputs that once crashed a reader."""


@pytest.mark.parametrize("name", CRASHES)
def test_what_once_crashed_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_bytes(CRASHES[name])
    with pytest.raises(gd.SourceError, match="header"):
        gd.tabulate(tmp_path / "v.csv", grid=gd.H3Grid(8), person="who", attributes=[gd.Nominal("poi")])


def test_lines_that_cannot_be_told_apart_are_no_crash(tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {"who": ["a", "b"], "lon": ["x", "16"], "lat": ["48", "48"], "poi": ['c"d', "e" * 200_000]}
    )
    text = "who,lon,lat,poi\n" + "".join(",".join(row) + "\n" for row in rows.itertuples(index=False))
    (tmp_path / "v.csv").write_text(text + "c,y,48,x\n", encoding="utf-8")
    with pytest.raises(gd.SourceError):
        gd.tabulate(tmp_path / "v.csv", grid=gd.H3Grid(8), person="who", attributes=[gd.Nominal("poi")])
