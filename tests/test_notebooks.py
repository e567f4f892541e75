"""The notebooks: their scripts run; the executed ones beside them are of these scripts, with pictures, and small."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
FOLDER = Path(__file__).parent.parent / "notebooks"
SCRIPTS = sorted(FOLDER.glob("[0-9]_*.py"))
PICTURES = {
    "1_quick_start": "text/html",
    "2_hospital_district": "image/png",
    "3_size_and_thresholds": "image/png",
}


def code(script: Path) -> list[str]:
    """The code cells of a script in jupytext's percent format."""
    cells = script.read_text(encoding="utf-8").split("# %%")[1:]
    return [cell.strip() for cell in cells if not cell.startswith(" [markdown]")]


def executed(script: Path) -> list[dict[str, Any]]:
    found = json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))
    return [cell for cell in found["cells"] if cell["cell_type"] == "code"]


def test_there_are_five() -> None:
    assert len(SCRIPTS) == 5


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.stem)
def test_the_script_runs(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.stem)
def test_the_executed_notebook_is_of_this_script(script: Path) -> None:
    cells = executed(script)
    assert ["".join(cell["source"]).strip() for cell in cells] == code(script)
    assert all(cell["execution_count"] for cell in cells)
    assert script.with_suffix(".ipynb").stat().st_size < 300_000


@pytest.mark.parametrize(("name", "kind"), PICTURES.items())
def test_there_are_pictures(name: str, kind: str) -> None:
    outputs = [o for cell in executed(FOLDER / f"{name}.py") for o in cell["outputs"]]
    assert [o for o in outputs if kind in o.get("data", {}) and (kind != "text/html" or "<svg" in str(o))]
