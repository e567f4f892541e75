"""Vendored: JavaScript and CSS of other projects that maps carry with them, unchanged; see README.md beside it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True)
class Library:
    """One vendored project: its name, version and licence, its files, and the texts its licence wants to go along."""

    name: str
    version: str
    licence: str
    scripts: tuple[str, ...]
    styles: tuple[str, ...]
    notices: tuple[str, ...]


LEAFLET = Library("Leaflet", "1.9.4", "BSD-2-Clause", ("leaflet.js",), ("leaflet.css",), ("leaflet.LICENSE",))
H3 = Library("h3-js", "4.5.0", "Apache-2.0", ("h3-js.umd.js",), (), ("h3-js.NOTICE",))


def read(name: str) -> str:
    """The text of a vendored file."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
