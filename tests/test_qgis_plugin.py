"""The QGIS plugin: the command is found, followed, cancelled; the algorithms run in the real QGIS."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import geopandas as gpd
import pandas as pd
import pytest
from test_qgis import SYSTEM_PYTHON, environment, has_qgis

from geodiv.formats import read_release

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
sys.path.insert(0, str(ROOT / "qgis"))

from geodiv_qgis import command  # noqa: E402

posix = pytest.mark.skipif(os.name != "posix", reason="scripts stand in for the command")


def script(path: Path, text: str) -> str:
    """An executable file with this text."""
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def executable(tmp_path: Path) -> str:
    """The geodiv command of this checkout, as a program."""
    text = f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m geodiv "$@"\n'
    return script(tmp_path / "geodiv", text)


@pytest.fixture
def city(tmp_path: Path) -> tuple[str, str]:
    """The fixture city as a layer of points, and its policy."""
    visits = pd.read_parquet(FIXTURES / "visits.parquet")
    located = visits[visits["lon"].notna() & visits["lat"].notna()]
    points = gpd.GeoDataFrame(
        located, geometry=gpd.points_from_xy(located["lon"], located["lat"]), crs="EPSG:4326"
    )
    points.drop(columns=["lon", "lat"]).to_file(tmp_path / "visits.gpkg", layer="my visits")
    lines = (FIXTURES / "policy.toml").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(("lon =", "lat =", "crs ="))]
    (tmp_path / "policy.toml").write_text("".join(kept), encoding="utf-8")
    shutil.copy(FIXTURES / "poi_taxonomy.csv", tmp_path)
    return f"{tmp_path / 'visits.gpkg'}|layername=my visits", str(tmp_path / "policy.toml")


def run_command(program: str, **changes: Any) -> tuple[dict[str, Any], list[Any], list[str]]:
    """Run a stand-in; its result, the progress and the messages that came."""
    steps: list[Any] = []
    said: list[str] = []
    options = {
        "progress": lambda *step: steps.append(step),
        "message": said.append,
        "cancelled": lambda: False,
    }
    return command.run([program], **(options | changes)), steps, said


def test_metadata_names_what_qgis_needs() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "qgis" / "geodiv_qgis" / "metadata.txt", encoding="utf-8")
    general = parser["general"]
    assert general["hasProcessingProvider"] == "yes"
    assert {"name", "qgisminimumversion", "description", "about", "version", "author", "email"} <= set(
        general
    )
    assert (ROOT / "qgis" / "geodiv_qgis" / general["icon"]).exists()


@posix
def test_the_command_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = script(tmp_path / "geodiv", "#!/bin/sh\n")
    monkeypatch.delenv("GEODIV_EXECUTABLE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command.find() == program
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(command.CommandError, match=r"not found\. Install geodiv"):
        command.find()
    monkeypatch.setenv("GEODIV_EXECUTABLE", program)
    assert command.find() == program
    with pytest.raises(command.CommandError, match="not found at '/no/geodiv'"):
        command.find("/no/geodiv")


@posix
def test_progress_messages_and_result(tmp_path: Path) -> None:
    text = """#!/bin/sh
echo '{"event": "progress", "stage": "read", "done": 1, "total": 4}' >&2
echo 'geodiv: note: Ünusual' >&2
echo '{"event": "progress", "stage": "count", "done": 7, "total": 0}' >&2
echo '{"zones": 3}'
"""
    result, steps, said = run_command(script(tmp_path / "geodiv", text))
    assert result == {"zones": 3}
    assert steps == [("read", 25.0), ("count", None)]
    assert said == ["geodiv: note: Ünusual"]


@posix
def test_errors_are_what_the_command_said(tmp_path: Path) -> None:
    program = script(tmp_path / "geodiv", "#!/bin/sh\necho 'geodiv: no such column' >&2\nexit 3\n")
    with pytest.raises(command.CommandError, match="no such column"):
        run_command(program)
    silent = script(tmp_path / "silent", "#!/bin/sh\nexit 1\n")
    with pytest.raises(command.CommandError, match="exit code 1"):
        run_command(silent)
    assert run_command(silent, allowed=(0, 1))[0] == {}


def test_a_command_that_cannot_start(tmp_path: Path) -> None:
    with pytest.raises(command.CommandError, match="could not be started"):
        run_command(str(tmp_path / "none"))


@posix
def test_a_cancelled_command_is_gone(tmp_path: Path) -> None:
    program = script(tmp_path / "geodiv", f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    with pytest.raises(command.Cancelled):
        run_command(program, cancelled=(tmp_path / "pid").exists)
    pid = int((tmp_path / "pid").read_text() or 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@posix
def test_the_libraries_of_qgis_stay_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONHOME", "PYTHONPATH", "PROJ_LIB", "GDAL_DATA"):
        monkeypatch.setenv(name, "/qgis")
    program = script(tmp_path / "geodiv", "#!/bin/sh\nenv >&2\n")
    assert not [line for line in run_command(program)[2] if line.endswith("=/qgis")]


def test_layers_are_named_where_a_file_has_several() -> None:
    assert command.layer_source("v.gpkg", "a b") == ["v.gpkg", "--layer", "a b"]
    assert command.layer_source("v.shp", "v") == ["v.shp"]


def process(
    folder: Path, executable: str, algorithm: str, **parameters: Any
) -> subprocess.CompletedProcess[str]:
    """One run of qgis_process with the plugin enabled."""
    variables = environment(folder) | {
        "QGIS_PLUGINPATH": str(ROOT / "qgis"),
        "GEODIV_EXECUTABLE": executable,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    program = "/usr/bin/qgis_process.bin"
    enable = [program, "plugins", "enable", "geodiv_qgis"]
    subprocess.run(enable, capture_output=True, env=variables, check=False)
    given = [f"{name}={value}" for name, value in parameters.items()]
    return subprocess.run(
        [program, "--json", "run", algorithm, "--", *given],
        capture_output=True,
        text=True,
        env=variables,
        check=False,
    )


@has_qgis
def test_enforce_in_qgis_process(tmp_path: Path, executable: str, city: tuple[str, str]) -> None:
    target, work = tmp_path / "release.gpkg", tmp_path / "work.gpkg"
    shown = process(
        tmp_path,
        executable,
        "geodiv:enforce",
        INPUT=city[0],
        POLICY=city[1],
        OUTPUT=target,
        WORK=work,
        TITLE="From QGIS",
    )
    assert shown.returncode == 0, shown.stderr
    results = json.loads(shown.stdout[shown.stdout.index("{") :])["results"]
    found = read_release(target)
    assert (results["N_ZONES"], results["N_COVERAGE"]) == (len(found.cells), found.metadata["coverage"])
    assert found.metadata["title"] == "From QGIS"
    assert work.exists()


@has_qgis
def test_score_without_a_policy_file(tmp_path: Path, executable: str, city: tuple[str, str]) -> None:
    target = tmp_path / "work.gpkg"
    shown = process(
        tmp_path, executable, "geodiv:score", INPUT=city[0], PERSON="person_id", ATTRIBUTES="poi_category;income_band",
        GRID=2, SIZE=2000, SQUARE_CRS="EPSG:3035", K=10, L=2.5, REFERENCE=2, RING=1, BAD_ROWS=2, OUTPUT=target,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    cells = gpd.read_file(target, layer="cells")
    assert cells.crs == "EPSG:3035"
    assert {"poi_category_fails", "income_band_fails"} <= set(cells.columns)


@has_qgis
def test_sweep_in_qgis_process(tmp_path: Path, executable: str, city: tuple[str, str]) -> None:
    target = tmp_path / "sweep.csv"
    parameters = {"INPUT": city[0], "POLICY": city[1], "SIZES": "7,8", "REMEDIES": "false", "OUTPUT": target}
    shown = process(tmp_path, executable, "geodiv:sweep", **parameters)
    assert shown.returncode == 0, shown.stderr
    assert len(pd.read_csv(target)) >= 2


@has_qgis
@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"PERSON": "nobody", "ATTRIBUTES": "poi_category", "GRID": 1}, "no column 'nobody'. They have: "),
        ({"PERSON": "person_id", "ATTRIBUTES": "poi_category", "GRID": 4}, "'Column of cell ids'"),
        ({"PERSON": "person_id", "GRID": 1}, "'Sensitive attributes'"),
        ({"PERSON": "person_id", "ATTRIBUTES": "poi_category"}, "choose which cells to use"),
        ({"PERSON": "person_id", "ATTRIBUTES": "poi_category", "GRID": 1, "T": 0.3, "K": 10}, "skip"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, executable: str, city: tuple[str, str], parameters: dict[str, Any], said: str
) -> None:
    target = tmp_path / "work.gpkg"
    shown = process(tmp_path, executable, "geodiv:score", INPUT=city[0], OUTPUT=target, **parameters)
    assert shown.returncode != 0
    assert said in shown.stderr + shown.stdout
    assert "Traceback" not in shown.stderr + shown.stdout
    assert not target.exists()


@has_qgis
def test_a_missing_command_is_said(tmp_path: Path, city: tuple[str, str]) -> None:
    target = tmp_path / "work.gpkg"
    shown = process(tmp_path, "/no/geodiv", "geodiv:score", INPUT=city[0], POLICY=city[1], OUTPUT=target)
    assert shown.returncode != 0
    assert "was not found at '/no/geodiv'" in shown.stderr + shown.stdout


@has_qgis
def test_help_is_there(tmp_path: Path) -> None:
    variables = environment(tmp_path) | {
        "QGIS_PLUGINPATH": str(ROOT / "qgis"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    program = "/usr/bin/qgis_process.bin"
    subprocess.run(
        [program, "plugins", "enable", "geodiv_qgis"], capture_output=True, env=variables, check=False
    )
    shown = subprocess.run(
        [program, "help", "geodiv:enforce"], capture_output=True, text=True, env=variables, check=False
    )
    assert "which may be published" in shown.stdout
    assert "k: fewest persons in a zone" in shown.stdout


def inside(folder: Path, executable: str, what: str, visits: str, policy: str) -> dict[str, Any]:
    """What tests/qgis_plugin_run.py says."""
    variables = environment(folder) | {"GEODIV_EXECUTABLE": executable, "PYTHONDONTWRITEBYTECODE": "1"}
    command_line = [str(SYSTEM_PYTHON), str(Path(__file__).with_name("qgis_plugin_run.py"))]
    shown = subprocess.run(
        [*command_line, what, visits, policy, str(folder)],
        capture_output=True,
        text=True,
        env=variables,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    seen: dict[str, Any] = json.loads(shown.stdout.splitlines()[-1])
    return seen


@has_qgis
def test_results_are_loaded_with_their_style(tmp_path: Path, executable: str, city: tuple[str, str]) -> None:
    seen = inside(tmp_path, executable, "load", *city)
    assert seen["drawn"] == {
        "OUTPUT": ["categorizedSymbol", "remedy"],
        "WORK": ["categorizedSymbol", "final_remedy"],
    }
    counts = read_release(tmp_path / "OUTPUT.gpkg").counts
    assert "gym" not in set(counts["value"]), "rows that were not selected were counted"


@has_qgis
def test_cancelling_stops_the_command(tmp_path: Path, city: tuple[str, str]) -> None:
    text = f"""#!/bin/sh
echo $$ > {tmp_path}/pid
echo '{{"event": "progress", "stage": "read", "done": 1, "total": 4}}' >&2
exec sleep 60
"""
    start = time.monotonic()
    seen = inside(tmp_path, script(tmp_path / "slow", text), "cancel", *city)
    assert seen == {"result": {}, "ok": True, "cancelled": True}
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert time.monotonic() - start < 55
