"""The mutation check itself: every kind of fault, the places left alone, and reasons that fit what stands there."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest

TREE = Path(__file__).parent.parent
sys.path.insert(0, str(TREE / "ci"))
from mutation import mutants  # noqa: E402

DECIDING = [
    *(TREE / "geodiv" / name for name in ("reference.py", "release.py", "geopackage.py", "enforcement.py")),
    *sorted((TREE / "geodiv").glob("measures/*.py")),
    *sorted((TREE / "geodiv").glob("remedies/*.py")),
]


def faults(body: str) -> set[str]:
    """What becomes of a function's lines, one fault each."""
    source = "def f(a, b):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    changed = [mutant.applied(source.encode()).decode() for mutant in mutants(source.encode())]
    assert all(ast.parse(text) and text != source for text in changed)
    return {"\n".join(line[4:] for line in text.splitlines()[1:]) for text in changed}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("c = a < b", {"c = (a <= b)", "c = (a >= b)"}),
        ("c = a == b", {"c = (a != b)"}),
        ("c = a + b", {"c = (a - b)"}),
        ("c = a @ b", set()),
        ("c = a & ~b", {"c = (a | ~b)", "c = a & (b)"}),
        ("c = not a", {"c = (a)"}),
        ("c = a and b", {"c = (a or b)"}),
        ("c = 3", {"c = 4", "c = 2"}),
        ("c = True", {"c = False"}),
        ("c = a.any(axis=b)", {"c = (a.all(axis=b))"}),
        ("c = min(a, b)", {"c = (max(a, b))"}),
        ("c = a if b else a", {"c = a if (not (b)) else a"}),
        ("c = [x for x in a if x]", {"c = [x for x in a if (not (x))]"}),
        ("a += b", {"pass", "a -= b"}),
        ("a[b] = b", {"pass"}),
        ("a = b", {"pass"}),
        ("c = b", set()),
        ("a.sort()", {"pass"}),
        ("raise ValueError(1 + 1)", {"pass"}),
        ("return a", {"return None"}),
        ("return None", set()),
        ('"""A text of 3."""', set()),
        ("c = f'{a + b}'", set()),
        ("c: tuple[int, 3] = b", set()),
        ("if a:\n    return", {"if (not (a)):\n    return"}),
        (
            "while a < b:\n    break",
            {"while (a <= b):\n    break", "while (a >= b):\n    break", "while a < b:\n    pass"},
        ),
    ],
)
def test_every_kind_of_fault(body: str, expected: set[str]) -> None:
    assert faults(body) == expected


def test_names_tell_mutants_apart_and_outlive_new_lines() -> None:
    source = b"def f(a):\n    return a[0] + a[0]\n"
    names = [mutant.name for mutant in mutants(source)]
    assert len(set(names)) == len(names) == 6
    assert [mutant.name for mutant in mutants(b"x = {}\n\n" + source)] == names
    assert {mutant.lines for mutant in mutants(b"x = {}\n\n" + source)} == {(4, 4)}


def test_places_are_bytes_and_not_letters() -> None:
    (mutant,) = mutants("def f(é):\n    return é\n".encode())
    assert mutant.applied("def f(é):\n    return é\n".encode()).decode() == "def f(é):\n    return None\n"


@pytest.mark.parametrize("path", DECIDING, ids=lambda p: p.stem)
def test_mutants_of_the_deciding_modules_are_python(path: Path) -> None:
    source = path.read_bytes()
    found = mutants(source)
    assert len({mutant.name for mutant in found}) == len(found)
    for mutant in found:
        assert ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source))


def test_every_reason_is_for_a_mutant_that_there_is() -> None:
    for entry in tomllib.loads((TREE / "ci/mutants.toml").read_text(encoding="utf-8"))["equivalent"]:
        names = {mutant.name for mutant in mutants((TREE / "geodiv" / entry["module"]).read_bytes())}
        assert entry["mutant"] in names, f"{entry['module']}: {entry['mutant']}"
        assert len(entry["why"].split()) >= 4
