"""What geodiv does without any extra: run by `ci/bounds.py bare` in an environment that has none.

python tests/bare.py           imports, counts, scores, repairs and writes, and asks for what an extra would give
python tests/bare.py --hide    the same where extras are installed: they are hidden from the import system first
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def _name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def optional() -> set[str]:
    """Modules of the packages that only an extra asks for, those that the plain install brings along left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = {_name(line) for lines in project["optional-dependencies"].values() for line in lines} - {
        "geodiv"
    }
    plain, left = set(), [_name(line) for line in project["dependencies"]]
    while left:
        name = left.pop()
        if name in plain:
            continue
        plain.add(name)
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        left += [_name(line) for line in needs if "extra ==" not in line]
    return {
        module
        for module, packages in metadata.packages_distributions().items()
        if {re.sub(r"[-_.]+", "-", name).lower() for name in packages} <= asked - plain
    }


class Hidden:
    """A finder of modules that finds all but some."""

    def __init__(self, finder: Any, names: set[str]) -> None:
        self._finder, self._names = finder, names

    def find_spec(self, name: str, *more: Any) -> Any:
        return None if name.partition(".")[0] in self._names else self._finder.find_spec(name, *more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


def _run(*arguments: str) -> tuple[int, str]:
    hidden = ["--hide"] if "--hide" in sys.argv else []
    done = subprocess.run(
        [sys.executable, __file__, *hidden, "--command", *arguments], capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stderr


def check(folder: Path) -> None:
    """Everything that needs no extra works, and what needs one names it."""
    import geodiv as gd

    for name in gd.__all__:
        getattr(gd, name)
    for path in sorted(Path(gd.__file__).parent.rglob("*.py")):
        parts = path.relative_to(Path(gd.__file__).parent).with_suffix("").parts
        if (
            parts[-1] not in ("__main__", "__init__") and parts[0] != "engines"
        ):  # an engine is loaded when it is asked for
            importlib.import_module(".".join(("geodiv", *parts)))
    at = str(folder)
    assert _run("demo", "-o", at)[0] == 0
    release, work = f"{at}/release.gpkg", f"{at}/work.gpkg"
    for suffix in ("gpkg", "parquet", "geojson", "fgb", "csv"):
        gd.read_release(release).to_file(folder / f"as-{suffix}.{suffix}")
        gd.read_release(folder / f"as-{suffix}.{suffix}")
    visits, policy = (str(ROOT / "fixtures" / name) for name in ("visits.parquet", "policy.toml"))
    for command in (
        ("info", release), ("audit", release), ("audit", release, "--visits", visits, "-p", policy), ("init", visits),
        ("map", release, "-o", f"{at}/map.html"), ("report", release, "-o", f"{at}/public.html"),
        ("report", work, "-o", f"{at}/internal.html"), ("score", visits, "-p", policy, "-o", f"{at}/scores.gpkg"),
        ("sweep", visits, "-p", policy, "--sizes", "7,8", "-o", f"{at}/sweep.csv"),
        ("taxonomy", "check", visits, "-p", policy, "--of", "poi_category"),
    ):  # fmt: skip
        code, told = _run(*command)
        assert code == 0, (command, told)
    assert "geodiv[map]" in (folder / "public.html").read_text(encoding="utf-8")
    for command, extra in (
        (
            ("sweep", visits, "-p", policy, "--sizes", "7,8", "-o", f"{at}/s.csv", "--plot", f"{at}/s.png"),
            "map",
        ),
        *((("score", visits, "-p", policy, "--engine", name), extra) for name, extra in engines()),
    ):
        code, told = _run(*command)
        assert code == 2, (command, code, told)
        assert f"geodiv[{extra}]" in told, (command, told)
    read = gd.read_release(release)
    for call in (read.plot, read.explore):
        try:
            call()
        except gd.UsageError as error:
            if "geodiv[map]" not in str(error):
                raise
        else:
            raise AssertionError(f"{call} needs an extra, and did without")


def engines() -> list[tuple[str, str]]:
    """Engines that need an extra, with its name, as far as this tree has them."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    return [(name, extra) for name, extra in (("duckdb", "duckdb"), ("local[2]", "spark")) if extra in extras]


def main() -> None:
    if "--hide" in sys.argv:
        names = optional()
        assert "matplotlib" in names, "nothing to hide"
        sys.meta_path[:] = [Hidden(finder, names) for finder in sys.meta_path]
        sys.path.insert(0, str(ROOT))
    if "--command" in sys.argv:
        from geodiv import cli

        cli.main(sys.argv[sys.argv.index("--command") + 1 :])
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder))


if __name__ == "__main__":
    main()
