"""The test suite with the lowest versions that pyproject.toml allows, with the newest that resolve, or with no extra.

    python ci/bounds.py lowest FOLDER [what pytest is to be told ...]
    python ci/bounds.py newest FOLDER [...]
    python ci/bounds.py bare   FOLDER

A fresh environment is made in FOLDER, the versions that it got are printed, and the tests of this tree are run with
it. `bare` installs geodiv alone, without any extra, and runs tests/bare.py. What fails sets the exit code.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<extras>\[[\w,.-]+\])?(?P<rest>.*)")
PARTNERS = ("qgis", "qgis_plugin", "browser", "postgis")
"""Tests of programs outside of Python: they tell nothing about versions of packages, and take the longest."""


def requirements(extra: str | None = None) -> Iterator[str]:
    """The requirements of geodiv, or those of one of its extras, with the extras that it names."""
    for line in PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]:
        found = REQUIREMENT.fullmatch(line)
        assert found, line
        if found["name"] == PROJECT["name"]:
            for other in found["extras"].strip("[]").split(","):
                yield from requirements(other)
        else:
            yield line


def lowest(line: str) -> str:
    """A requirement held at its lower bound; one without a bound stays as it is."""
    bound = re.search(r">=\s*([\w.]+)", line)
    found = REQUIREMENT.fullmatch(line)
    assert found, line
    return line if bound is None else f"{found['name']}{found['extras'] or ''}=={bound[1]}"


def main(mode: str, folder: str, *arguments: str) -> int:
    venv.create(folder, with_pip=True, clear=True)
    python = str(Path(folder, "bin", "python"))
    everything = [*requirements(), *requirements("test")]
    wanted = {
        "lowest": [lowest(line) for line in everything],
        "newest": everything,
        "bare": list(requirements()),
    }[mode]
    install = [python, "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, "--upgrade", *wanted], check=True)
    subprocess.run([*install, "--no-deps", str(ROOT)], check=True)
    versions = subprocess.run(
        [python, "-m", "pip", "list"], check=True, capture_output=True, text=True
    ).stdout
    print(sys.version)
    print(versions, flush=True)
    tests = ROOT / "tests"
    if mode == "bare":
        return subprocess.run([python, str(tests / "bare.py")], cwd=folder).returncode
    left = [f"--ignore={tests / f'test_{name}.py'}" for name in PARTNERS]
    told = [python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *left, *arguments]
    return subprocess.run(told, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
