"""A first policy.toml for a file of visits: columns found, values listed, a cell size suggested, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h3.api.numpy_int as h3
import pandas as pd

from .cellsize import Size, suggested_size
from .intake.textcolumn import check_encoding
from .policy_file import quoted
from .recognise import Candidate, Columns, recognised
from .sources import Source, need, open_source
from .sources.frames import ArrowSource
from .text import as_text, printable

L_MIN = 3.0


def suggested_policy(
    source: Any,
    *,
    person: str | None = None,
    layer: str | None = None,
    crs: str | None = None,
    k_min: int = 10,
) -> str:
    """The text of a commented policy.toml for these visits.

    Parameters
    ----------
    source : path or frame
        As for `geodiv.tabulate`.
    person : str, optional
        Column of the person; guessed by its name unless given.
    layer, crs : str, optional
        As for `geodiv.tabulate`.
    k_min : int, default 10
        Fewest persons in a zone: the suggested cell size depends on it.

    Returns
    -------
    str
        TOML that `geodiv.read_run` reads once every empty text in it is filled in. It holds no count of persons, and
        of each column only the values that at least `k_min` persons share: a policy travels with the release.

    Raises
    ------
    SourceError
        The visits cannot be read.
    """
    opened = open_source(source, layer)
    if isinstance(opened, ArrowSource):
        opened = opened.held()
    names = [name for name in opened.columns if name != opened.geometry]
    table = next(iter(opened.batches(names, None)))
    for name in names:
        check_encoding(table[name], name)
    columns = recognised(opened, table, None if person is None else need(opened, person, "the person"))
    size = suggested_size(opened, columns, layer=layer, crs=crs, k_min=k_min)
    common = _common_values(table, columns, k_min)
    blocks = [
        _head(opened),
        _visits(columns, opened, layer, crs, names),
        _grid(columns, size, k_min),
        *_attributes(columns, common),
        _gates(columns, k_min),
        _rest(columns, size),
    ]
    return "\n\n".join(blocks) + "\n"


def _common_values(table: Any, columns: Columns, k_min: int) -> dict[str, set[str]]:
    """Of each candidate column, the values that at least `k_min` persons share."""
    if columns.person is None:
        return {c.column: set() for c in columns.candidates}
    person = table[columns.person].to_pandas()
    found = {}
    for candidate in columns.candidates:
        crowd = (
            person.groupby(table[candidate.column].to_pandas().to_numpy()).nunique()
            if candidate.listable
            else {}
        )
        found[candidate.column] = {as_text(value) for value, n in crowd.items() if n >= k_min}
    return found


def _head(source: Source) -> str:
    return (
        f"# A policy for {_short(source.name)}, written by `geodiv init`: guesses are called so. Read it, change it.\n"
        "# This text travels with the release, comments included: leave nothing in it that must not be published.\n"
        "# Texts stand in quotes; a line that begins with # is off. A gate that is not named is off."
    )


def _short(name: str) -> str:
    """A file's name without its folders, which are nobody's business."""
    path, layer, rest = name.partition("' (layer ")
    return printable(path.strip("'").replace("\\", "/").rsplit("/", 1)[-1] + layer[1:] + rest)


def _visits(
    columns: Columns, source: Source, layer: str | None, crs: str | None, names: Sequence[str]
) -> str:
    lines = ["[visits]"]
    if columns.person:
        lines.append(f"person = {quoted(columns.person)}   # persons are counted, never rows")
    else:
        lines.append(f'person = ""   # not recognised. One of: {", ".join(map(quoted, names))}')
        lines.append("# name it and run again, geodiv init --person COLUMN: values and cell size go by it")
    if columns.geometry is None and columns.lon and columns.lat:
        lines += [f"lon = {quoted(columns.lon)}", f"lat = {quoted(columns.lat)}"]
        if crs or columns.degrees:
            lines.append(f"crs = {quoted(crs or 'EPSG:4326')}" + ("" if crs else "   # assumed: degrees"))
        else:
            lines.append(
                'crs = ""   # the numbers are no degrees: name their CRS, geodiv init --crs EPSG:...'
            )
    elif columns.geometry is not None and source.crs is None:
        lines.append(
            f"crs = {quoted(crs or '')}   # the layer does not say it" + ("" if crs else "; fill it in")
        )
    if layer:
        lines.append(f"layer = {quoted(layer)}")
    lines.append(
        'on_bad_rows = "error"   # or "skip": rows without person or place are always tallied by reason'
    )
    return "\n".join(lines)


def _grid(columns: Columns, size: Size | str, k_min: int) -> str:
    if columns.cell is not None and (columns.resolution is not None or isinstance(size, str)):
        if columns.resolution is None:
            return (
                f'[grid]\nkind = "column"\ncolumn = {quoted(columns.cell)}   # guessed: ids of cells or zones\n'
                '# kind = "zones" with path = "zones.gpkg" and id = "..." gives these zones their outlines'
            )
        return (
            f'[grid]\nkind = "h3"\nresolution = {columns.resolution}\n'
            f"column = {quoted(columns.cell)}   # holds H3 cells of resolution {columns.resolution}"
        )
    if isinstance(size, str):
        return f'[grid]\nkind = "h3"\nresolution = 8   # {size}'
    lines = [
        "[grid]",
        'kind = "h3"',
        f"resolution = {size.resolution}   # suggested for k_min = {k_min}, since",
    ]
    lines += [
        f"#   at resolution {r} (hexagons of about {_metres(r)} m across) {share:.0%} of the visits lie in cells with "
        f"at least {k_min} persons"
        for r, share in size.shares
    ]
    side = float(f"{h3.average_hexagon_area(size.resolution, unit='m^2') ** 0.5:.1g}")
    lines.append(
        f'# squares instead: kind = "square", size = {side:.0f} (metres), crs = "EPSG:3035" (any metric CRS)'
    )
    return "\n".join(lines)


def _metres(resolution: int) -> int:
    across = 2 * h3.average_hexagon_edge_length(resolution, unit="m")
    return int(round(across, -2 if across > 1000 else -1))


def _attributes(columns: Columns, common: dict[str, set[str]]) -> list[str]:
    listable = [c for c in columns.candidates if c.listable]
    first = listable[0] if listable else None
    blocks = []
    if first is None:
        blocks.append(
            "# No column with a few distinct values was found. The sensitive one is needed:\n"
            '[[attribute]]\ncolumn = ""'
        )
    for candidate in columns.candidates:
        if candidate is first:
            text = "# What people did: the attribute to protect. Guessed; is it this one?\n"
            blocks.append(text + _attribute(candidate, common))
        elif candidate.listable:
            text = "# Any column that a reader could treat as sensitive counts. Remove one # a line to add this one:\n"
            blocks.append(text + _off(_attribute(candidate, common)))
        elif candidate.kind == "text" and candidate.values:
            blocks.append(
                f"# column {quoted(candidate.column)} has too many values to list. If they tell what was done (the id "
                "of a\n# facility does), it is sensitive too, and needs a taxonomy."
            )
        elif candidate.kind != "text" and len(candidate.values) > 2:
            text = "# A number is cut into bands; one outside the edges is an error. Remove one # a line to add it:\n"
            blocks.append(text + _off(_bands(candidate)))
    return blocks


def _attribute(candidate: Candidate, common: dict[str, set[str]]) -> str:
    shared = [v for v in candidate.values if v in common[candidate.column]]
    rare = len(candidate.values) - len(shared)
    lines = ["[[attribute]]", f"column = {quoted(candidate.column)}", 'kind = "nominal"   # no order']
    if shared:
        lines.append(f"# values: {', '.join(map(quoted, shared))}")
    if rare and shared:
        lines.append("# and rarer ones, not listed here since this text travels with the release")
    if same := _same_but_for_case(shared):
        lines.append(
            f"# these differ by case or spaces only, and are different values: {', '.join(map(quoted, same))}"
        )
    if candidate.markers:
        lines.append(
            f"missing = {quoted(candidate.markers)}   # guessed: these mean missing, a value of its own"
        )
    else:
        lines.append('# missing = [""]   # no marker of a missing value was recognised')
    order = quoted(shared or ["lowest", "...", "highest"])
    lines.append(f'# if the values have an order: kind = "ordinal" and order = {order}, lowest first')
    if candidate.kind == "text":
        lines.append('# taxonomy = "taxonomy.csv"   # columns value,level1: coarser values, to fall back on')
    return "\n".join(lines)


def _bands(candidate: Candidate) -> str:
    missing = f"\nmissing = {quoted(candidate.markers)}" if candidate.markers else ""
    return (
        f'[[attribute]]\ncolumn = {quoted(candidate.column)}\nkind = "numeric"\n'
        f"edges = [-inf, 0, 10, 20, inf]   # replace them by edges that mean something{missing}"
    )


def _off(text: str) -> str:
    return "\n".join(f"# {line}" for line in text.split("\n"))


def _same_but_for_case(values: Sequence[str]) -> list[str]:
    keys = pd.Series([v.strip().lower() for v in values], dtype=object)
    return [v for v, twice in zip(values, keys.duplicated(keep=False), strict=True) if twice]


def _gates(columns: Columns, k_min: int) -> str:
    first = next((c for c in columns.candidates if c.listable), None)
    l_min = min(L_MIN, float(len(first.values))) if first else L_MIN
    fewer = (
        "not above the number of values" if l_min < L_MIN else "a reader must still consider so many values"
    )
    return "\n".join([
        "[gates]",
        f"k_min = {k_min}   # distinct persons in a zone" + ("" if k_min >= 10 else "; below 10 entropy means nothing"),
        f"l_min = {l_min:g}   # {fewer}",
        "t_max = 0.3   # distance to the reference; for attributes without order no value shifts by more",
        "shift_max = 0.3   # largest change of a reader's belief in one value",
        "incidence_max = 0.8   # at most this share of a zone's persons under one value",
        "# share_max, lift_max, label_min, c_l with c_max: off",
    ])  # fmt: skip


def _rest(columns: Columns, size: Size | str) -> str:
    outlines = columns.resolution is not None or not (columns.cell is not None and isinstance(size, str))
    ring = (
        'scope = "ring"   # judge a zone against its surroundings; "global": against everything\n'
        'order = 1\nmax_order = 3\nmin_persons = 30\nfallback = "global"'
    )
    return (
        "[reference]\n"
        + (ring if outlines else 'scope = "global"   # these cells have no outlines, so no neighbours')
        + '\n\n[remedies]\nladder = ["recode", "merge", "suppress"]   # coarsen values first, suppress last\n'
        'max_members = 7   # cells of a merged zone at most\n\n[release]\ntitle = "Visits"   # what a map reader sees\n'
        'note = ""   # the choices that were made, in words\ncount_min = 3   # smaller label counts are hidden'
    )
