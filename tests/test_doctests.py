"""Every example in a docstring runs, and every public function has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import shutil
from pathlib import Path

import numpy as np
import pytest

import geodiv
from geodiv import audits, plots

MODULES = sorted(
    m.name for m in pkgutil.walk_packages(geodiv.__path__, "geodiv.") if not m.name.endswith("__main__")
)


@pytest.fixture
def fixtures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(Path(__file__).parent.parent / "fixtures", tmp_path / "fixtures")
    monkeypatch.chdir(tmp_path)


@pytest.mark.skipif(
    int(np.__version__.split(".")[0]) < 2, reason="examples show numbers as NumPy 2 prints them"
)
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.usefixtures("fixtures")
def test_examples_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_function_has_an_example() -> None:
    functions = [getattr(geodiv, name) for name in geodiv.__all__ if name != "__version__"]
    functions += [getattr(home, name) for home in (audits, plots) for name in home.__all__]
    without = [
        f.__name__ for f in functions if inspect.isfunction(f) and ">>>" not in (inspect.getdoc(f) or "")
    ]
    assert without == []
