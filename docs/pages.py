"""Pages that are made when the site is built: from docstrings, from ``--help``, from the files of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
GROUPS = {
    "The main job": ["tabulate", "score", "enforce", "read_release", "read_run", "advice", "failing_districts"],
    "Textbook functions": [
        "cell_attribute_table", "entropy_diversity", "closeness", "posterior_shift", "remedy", "enforce_l_diversity",
    ],
}  # fmt: skip


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace ``<!-- include FILE -->``, ``<!-- commands -->`` and ``<!-- names -->``."""
    markdown = re.sub(r"<!-- include (\S+) -->", lambda found: _included(found[1]), markdown)
    if "<!-- commands -->" in markdown:
        markdown = markdown.replace("<!-- commands -->", commands())
    return markdown.replace("<!-- names -->", names()) if "<!-- names -->" in markdown else markdown


def commands() -> str:
    """``--help`` of every verb, a heading each."""
    from geodiv.cli import cli

    return "\n\n".join(f"## `{name}`\n\n```text\n{text}\n```" for name, text in _helps("geodiv", cli))


def names() -> str:
    """A mkdocstrings line for every public name, the functions of the main job first."""
    import geodiv

    homes = {name: f"geodiv.{home}.{name}" for name, home in geodiv._HOME.items()}
    rest = sorted(name for name in homes if not any(name in group for group in GROUPS.values()))
    groups = {
        **GROUPS,
        "Records": [n for n in rest if not _is_error(n)],
        "Errors": [n for n in rest if _is_error(n)],
    }
    return "\n\n".join(
        f"## {title}\n\n" + "\n\n".join(f"::: {homes[name]}" for name in group)
        for title, group in groups.items()
    )


def _is_error(name: str) -> bool:
    return name.endswith("Error") or name == "NotConverged"


def _helps(name: str, command: Any) -> list[tuple[str, str]]:
    import click

    context = click.Context(command, info_name=name, max_content_width=100)
    found = [(name, command.get_help(context))]
    for verb in command.list_commands(context) if isinstance(command, click.Group) else []:
        found += _helps(f"{name} {verb}", command.get_command(context, verb))
    return found


def _included(name: str) -> str:
    text = (ROOT / name).read_text(encoding="utf-8")
    return (
        re.sub(r"\]\((?!http|#)([^)]+)\)", r"]", text) if name.endswith(".md") else f"```python\n{text}\n```"
    )
