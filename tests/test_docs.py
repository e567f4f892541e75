"""The documentation tells the truth: its Python runs, and every name, verb, flag, gate, key and column is in it."""

from __future__ import annotations

import doctest
import itertools
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import geodiv
from geodiv.audits.sweep import SIZE_COLUMNS, THRESHOLD_COLUMNS
from geodiv.cli import cli
from geodiv.columns import release_tables, work_tables
from geodiv.policy import GATES
from geodiv.policy_file import (
    ATTRIBUTE_KEYS,
    GRID_KEYS,
    PLACE_KEYS,
    REFERENCE_KEYS,
    RELEASE_KEYS,
    REMEDY_KEYS,
    VISIT_KEYS,
)

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
OUTSIDE = {"how-to/analyst.md": "to_postgis"}
"""Blocks that need a server: run by tests of their own, named by a word in them."""


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def names(page: Path) -> str:
    return page.relative_to(ROOT / "docs").as_posix()


CODE = [
    pytest.param(page, code, id=f"{names(page)}-{i}")
    for page in PAGES
    for i, code in enumerate(blocks(page))
    if OUTSIDE.get(names(page), "\0") not in code
]


@pytest.fixture
def fixtures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return tmp_path


@pytest.mark.parametrize(("page", "code"), CODE)
@pytest.mark.usefixtures("fixtures")
def test_python_runs(page: Path, code: str) -> None:
    start: dict[str, Any] = {"gd": geodiv}
    if 'read_release("release.gpkg")' in code:
        run = geodiv.read_run("fixtures/policy.toml")
        run.enforce("fixtures/visits.parquet").release.to_file("release.gpkg")
    if ">>>" in code:
        test = doctest.DocTestParser().get_doctest(code, start, page.name, str(page), 0)
        assert doctest.DocTestRunner().run(test).failed == 0
    else:
        exec(compile(code, str(page), "exec"), start)


def verbs(command: click.Command, name: str = "geodiv") -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for verb in command.list_commands(context):
            found = command.get_command(context, verb)
            assert found is not None
            yield from verbs(found, f"{name} {verb}")


@pytest.fixture(scope="module")
def pages_module() -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_names_every_public_name(pages_module: Any) -> None:
    page = pages_module.names()
    assert re.findall(r"^::: geodiv\.[\w.]+\.(\w+)$", page, flags=re.M)
    for name in set(geodiv.__all__) - {"__version__"}:
        assert re.search(rf"^::: geodiv\.[\w.]+\.{name}$", page, flags=re.M), name


def test_the_command_page_holds_every_verb_and_flag(pages_module: Any) -> None:
    page = pages_module.commands()
    for name, command in verbs(cli):
        assert f"## `{name}`" in page
        for parameter in command.params:
            for flag in parameter.opts if isinstance(parameter, click.Option) else []:
                assert flag in page, f"{name} {flag}"


def test_every_verb_is_explained_somewhere() -> None:
    text = "\n".join(p.read_text(encoding="utf-8") for p in [*PAGES, ROOT / "README.md"])
    for name, _ in verbs(cli):
        assert name in text, name


def shell_lines() -> Iterator[tuple[str, list[str]]]:
    """(page, words) of each geodiv command in the pages' shell blocks, up to a comment or a redirection."""
    for page in [*PAGES, *(ROOT / name for name in ("README.md", "qgis/README.md", "SECURITY.md"))]:
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        for block in re.findall(r"^```sh\n(.*?)^```$", text, flags=re.M | re.S):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["geodiv"]:
                    yield page.name, list(itertools.takewhile(lambda word: word not in (">", "|"), words[1:]))


SHELL = [pytest.param(words, id=f"{page}: {' '.join(words)[:60]}") for page, words in shell_lines()]


def test_there_are_shell_lines() -> None:
    assert len(SHELL) > 20


@pytest.mark.parametrize("words", SHELL)
def test_a_shell_line_is_a_command_with_its_flags(words: list[str]) -> None:
    command: click.Command = cli
    while isinstance(command, click.Group) and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    assert not isinstance(command, click.Group), words
    if words != ["--help"]:
        command.make_context(
            "geodiv", list(words)
        )  # raises where a flag is not one, or an argument is missing


def test_every_gate_has_its_row() -> None:
    text = (ROOT / "docs" / "parameters.md").read_text(encoding="utf-8")
    for gate in GATES:
        assert re.search(rf"^\| .*`{gate}`.* \|", text, flags=re.M), gate


def test_every_column_is_described() -> None:
    text = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    release = release_tables(["x_level"], ["attribute", "value", "level1", "name", "version", "digest"])
    work = work_tables(["x_fails"])
    for table in [*release.values(), *work.values()]:
        assert f"`{table.name}`" in text, table.name
        for column in table.columns:
            name = column.name.replace("x_", "_", 1) if column.name.startswith("x_") else column.name
            assert f"{name}`" in text, f"{table.name}.{column.name}"


def test_every_column_of_a_sweep_and_of_rejects_is_described() -> None:
    text = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    for name in (*SIZE_COLUMNS, *THRESHOLD_COLUMNS, "row", "reason"):
        assert f"`{name}`" in text, name


@pytest.mark.usefixtures("fixtures")
def test_every_key_of_the_metadata_is_described() -> None:
    text = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    found = geodiv.read_run("fixtures/policy.toml").enforce("fixtures/visits.parquet").release.metadata
    for name in (*found, *found["policy"], *found["attributes"][0]):
        assert f"`{name}`" in text, name


def test_every_key_of_a_policy_is_described() -> None:
    text = (ROOT / "docs" / "parameters.md").read_text(encoding="utf-8")
    variants = (*GRID_KEYS.values(), *REFERENCE_KEYS.values(), *ATTRIBUTE_KEYS.values())
    for keys in (VISIT_KEYS, REMEDY_KEYS, RELEASE_KEYS, PLACE_KEYS, *variants):
        for key in keys:
            assert f"`{key}`" in text, key


def test_links_lead_to_pages() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(((?!http)[^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists() or (ROOT / target).exists(), f"{names(page)}: {target}"
