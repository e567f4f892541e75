"""The house stands: imports go down the floors, public names are there, and importing costs nothing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import geodiv

PACKAGE = Path(geodiv.__file__).parent
MODULES = sorted(
    p for p in PACKAGE.rglob("*.py") if p not in (PACKAGE / "__init__.py", PACKAGE / "__main__.py")
)
LATE = {
    "release": 6,
    "enforcement": 6,
}  # Release.to_file and Outcome.to_work import floor 6 inside a function
HEAVY = ("pandas", "geopandas", "libpysal", "h3", "duckdb", "pyspark", "matplotlib")


def floors() -> dict[str, tuple[int, int]]:
    """Floor and place of each top-level module or subpackage, from the comment in ``geodiv/__init__.py``."""
    lines = re.findall(r"^#   (?:(\d) \w.*?\S)?  +(\w.+)$", (PACKAGE / "__init__.py").read_text(), flags=re.M)
    places: dict[str, tuple[int, int]] = {}
    floor = 0
    for number, names in lines:
        floor = int(number or floor)
        for name in names.split():
            places[name] = (floor, len(places))
    return places


def imports(path: Path) -> set[tuple[str, bool]]:
    """Top-level parts of geodiv that a file imports, and whether inside a function."""
    tree = ast.parse(path.read_text())
    inside = {n for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
    package = ["geodiv", *path.relative_to(PACKAGE).parent.parts]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module or "").split(".")
            tops = [base[1]] if len(base) > 1 and base[1] else [alias.name for alias in node.names]
            found |= {(top, node in inside) for top in tops}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down_or_up_the_list(path: Path) -> None:
    places, parts = floors(), path.relative_to(PACKAGE).with_suffix("").parts
    assert parts[0] in places, f"{parts[0]} has no place in the list of geodiv/__init__.py"
    for name, late in imports(path) - {(parts[0], False), (parts[0], True), ("__version__", False)}:
        allowed = places[name] < places[parts[0]] or (late and places[name][0] == LATE.get(parts[0]))
        assert allowed, (
            f"{'/'.join(parts)} on floor {places[parts[0]][0]} imports {name} of floor {places[name][0]}"
        )


def test_every_public_name_is_there_and_documented() -> None:
    for name in geodiv.__all__:
        value = getattr(geodiv, name)
        assert name == "__version__" or (value.__doc__ or "").strip(), f"{name} has no docstring"


def test_public_names_are_declared_for_type_checkers() -> None:
    text = (PACKAGE / "__init__.py").read_text()
    declared = set(re.findall(r"^    from \.[\w.]+ import \w+ as (\w+)$", text, flags=re.M))
    assert declared == set(geodiv.__all__) - {"__version__"}
    assert (PACKAGE / "py.typed").exists()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        getattr(geodiv, "nonsense")  # noqa: B009 - the attribute is not there


def test_importing_loads_nothing_heavy() -> None:
    code = f"import sys, geodiv; print([m for m in {HEAVY} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_a_help_page_loads_nothing_heavy() -> None:
    code = f"import sys; from geodiv.cli import run; run(['--help']); print([m for m in {HEAVY} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_bare_except_and_no_name_without_meaning(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"{path.name}:{node.lineno}: a bare except"
            assert not (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))
    assert not {"utils", "helpers", "common"} & set(path.relative_to(PACKAGE).with_suffix("").parts)
