"""The README tells the truth: its Python runs, its first screen holds two command lines, its links lead somewhere."""

from __future__ import annotations

import doctest
import re
import shutil
import tomllib
from pathlib import Path

import pytest

import geodiv
from geodiv.cli import cli

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.M | re.S)


@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.strip().splitlines()[-1][:40])
def test_python_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    monkeypatch.chdir(tmp_path)
    if ">>>" in code:
        test = doctest.DocTestParser().get_doctest(code, {}, "README", "README.md", 0)
        assert doctest.DocTestRunner().run(test).failed == 0
        return
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "release.gpkg").exists()
    assert (tmp_path / "release.json").exists()


def test_the_first_screen_holds_exactly_two_command_lines() -> None:
    commands = [line for block in blocks("sh")[:2] for line in block.splitlines()]
    assert commands == [
        "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/geodiv demo",
        "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/python -m pytest",
    ]
    assert README.count("python3 -m venv") == 2
    assert README.index("geodiv demo") < 1500


def test_every_verb_it_names_exists() -> None:
    verbs = re.findall(r"^geodiv (\w+) ", "\n".join(blocks("sh")), flags=re.M)
    assert verbs
    assert set(verbs) <= set(cli.commands)


def test_links_lead_to_files() -> None:
    text = re.sub(r"<!--.*?-->", "", README, flags=re.S)
    for target in re.findall(r"\]\(((?!http)[^)#]+)", text):
        assert (ROOT / target).exists(), target


def test_each_version_of_the_changelog_opens_with_verdicts() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.split(r"^## ", text, flags=re.M)[1:]
    assert versions
    for version in versions:
        assert re.findall(r"^### (.+)$", version, flags=re.M)[0] == "Verdicts", version.splitlines()[0]


@pytest.mark.skipif(not (ROOT / "recipe").is_dir(), reason="the recipe is not in a source distribution")
def test_the_recipe_needs_what_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    run = recipe[recipe.index("  run:") : recipe.index("test:")]
    names = {"h3-py": "h3"}
    found = {f"{names.get(name, name)}>={least}" for name, least in re.findall(r"- (\S+) >=(\S+)", run)}
    assert found == {*project["dependencies"], f"python{project['requires-python']}"}
    assert f'set version = "{geodiv.__version__}"' in recipe
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(geodiv.__version__)}$", citation, flags=re.M)
