"""Flags that describe a run on the command line, each with its place in policy.toml."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .errors import GridError, PolicyError, UsageError, listed

if TYPE_CHECKING:
    from .engines.protocol import Engine
    from .policy_file import Tables
    from .run import Run

F = TypeVar("F", bound=Callable[..., Any])

_PLAIN: tuple[tuple[str, str, str, Any, str], ...] = (
    # flag, table, key, type, help
    ("--person", "visits", "person", str, "Column that names the person."),
    ("--lon", "visits", "lon", str, "Column of longitudes (or x in --crs)."),
    ("--lat", "visits", "lat", str, "Column of latitudes (or y in --crs)."),
    ("--crs", "visits", "crs", str, "CRS of lon/lat or of a layer without one, such as EPSG:4326."),
    ("--layer", "visits", "layer", str, "Layer to read, where a file has several."),
    (
        "--on-bad-rows",
        "visits",
        "on_bad_rows",
        click.Choice(["error", "skip"]),
        "Rows that cannot be counted.",
    ),
    (
        "--points",
        "visits",
        "points",
        click.Choice(["only", "representative"]),
        "Whether other geometries are an error, or stand for a point inside.",
    ),
    ("--k", "gates", "k_min", int, "Fewest persons in a zone."),
    ("--l", "gates", "l_min", float, "Smallest effective number of values."),
    ("--c-l", "gates", "c_l", int, "l of recursive (c, l)-diversity; needs --c."),
    ("--c", "gates", "c_max", float, "c of recursive (c, l)-diversity; needs --c-l."),
    ("--t", "gates", "t_max", float, "Largest distance to the reference, 0 to 1."),
    ("--shift", "gates", "shift_max", float, "Largest rise or fall of the belief in one value."),
    ("--lift", "gates", "lift_max", float, "Largest ratio of belief to prior."),
    ("--share", "gates", "share_max", float, "Largest belief in one value."),
    ("--incidence", "gates", "incidence_max", float, "Largest share of a zone's persons under one label."),
    ("--label-min", "gates", "label_min", int, "Fewest persons under a published label."),
    ("--tier", "gates", "tier_max", float, "Largest belief in the sensitive values together."),
    (
        "--tier-incidence",
        "gates",
        "tier_incidence_max",
        float,
        "Largest share of persons with any sensitive value.",
    ),
    ("--ring", "reference", "order", int, "Judge against the cells within this many steps."),
    ("--max-ring", "reference", "max_order", int, "How far a ring widens."),
    (
        "--regions",
        "reference",
        "regions",
        str,
        "Judge against regions: CSV of cell_id,region or a polygon layer.",
    ),
    ("--regions-column", "reference", "column", str, "Column of that layer that names the region."),
    (
        "--weights",
        "reference",
        "graph",
        str,
        "Judge against weights: .gal, .gwt or CSV of focal,neighbor,weight.",
    ),
    ("--min-persons", "reference", "min_persons", int, "Persons that a local reference needs."),
    (
        "--fallback",
        "reference",
        "fallback",
        click.Choice(["global", "none"]),
        "Where the local one is too small.",
    ),
    (
        "--recode-scope",
        "remedies",
        "recode_scope",
        click.Choice(["zone", "release"]),
        "Coarsen failing zones, or all.",
    ),
    ("--max-members", "remedies", "max_members", int, "Cells of a merged zone at most."),
    ("--max-rounds", "remedies", "max_rounds", int, "Rounds of remedies at most."),
    ("--title", "release", "title", str, "Title of the release."),
    ("--note", "release", "note", str, "The choice that was made, in words."),
    ("--count-min", "release", "count_min", int, "Label counts below it are hidden."),
)
_PATHS = {"regions", "graph"}
_SCOPES = {"ring": ("order", "max_order"), "region": ("regions", "column"), "weights": ("graph",)}


def run_flags(command: F) -> F:
    """A click command that takes ``-p`` and every flag of a run; it gets them by name, None when not given."""
    options = [
        click.option("-p", "--policy", "policy", metavar="TOML", help="Policy file; flags win over it."),
        click.option("--h3", type=int, metavar="RESOLUTION", help="Grid: H3 cells."),
        click.option("--square", type=float, metavar="METRES", help="Grid: squares; needs --square-crs."),
        click.option("--square-crs", metavar="CRS", help="Metric CRS of the squares, such as EPSG:3035."),
        click.option("--zones", metavar="LAYER", help="Grid: your polygons; needs --zones-id."),
        click.option("--zones-id", metavar="COLUMN", help="Column of the polygons that holds their id."),
        click.option(
            "--contiguity",
            type=click.Choice(["queen", "rook"]),
            help="Neighbours among --zones: a shared point (queen, the default) or a shared border (rook).",
        ),
        click.option("--cell-column", metavar="COLUMN", help="Column of the visits that holds cell ids."),
        click.option(
            "--attribute", multiple=True, metavar="COLUMN", help="Sensitive attribute without order."
        ),
        click.option(
            "--ordinal", multiple=True, metavar="COLUMN=A,B,C", help="Attribute with a stated order."
        ),
        click.option(
            "--numeric", multiple=True, metavar="COLUMN=0,10,INF", help="Number, cut at these edges."
        ),
        click.option(
            "--taxonomy", multiple=True, metavar="[COLUMN=]CSV", help="Coarser values of an attribute."
        ),
        click.option("--missing", multiple=True, metavar="VALUE", help="Marker that means missing."),
        click.option("--ladder", metavar="A,B,C", help="Remedies: of recode,merge,suppress, in this order."),
        click.option(
            "--residual/--no-residual", default=None, help="Whether what is left out must be safe too."
        ),
    ]
    options += [
        click.option(flag, f"{table}__{key}", type=kind, help=text) for flag, table, key, kind, text in _PLAIN
    ]
    for option in reversed(options):
        command = option(command)
    return command


def engine_flags(command: F) -> F:
    """A click command that takes ``--engine`` and what belongs to it; for `engine_of_flags`."""
    options = [
        click.option(
            "--engine",
            default="memory",
            show_default=True,
            help="What counts: memory, duckdb, or Spark as spark://host:port, sc://host:port or local[2].",
        ),
        click.option("--memory-limit", metavar="SIZE", help="What --engine duckdb may take, such as 4GB."),
        click.option("--threads", type=int, help="Cores that --engine duckdb may use; all unless given."),
        click.option(
            "--spill-folder",
            metavar="DIR",
            help="Where duckdb, or Spark on a shared disk, keeps what it counts until the command ends.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def engine_of_flags(flags: dict[str, Any]) -> Engine:
    """The engine that the flags name, taken out of them; it is closed when the command ends, however it ends.

    Raises
    ------
    UsageError
        As `engine_of`.
    """
    from .engines.choice import opened

    keys = {"memory_limit": "memory_limit", "threads": "threads", "spill_folder": "folder"}
    given = {key: flags.pop(flag) for flag, key in keys.items()}
    options = {key: value for key, value in given.items() if value is not None}
    return click.get_current_context().with_resource(opened(flags.pop("engine"), **options))


def run_of_flags(flags: Mapping[str, Any]) -> Run:
    """The run that a policy file and flags describe together; a flag wins over the file.

    The text that goes into the release is the file as it is when no flag was given, else the joined run as TOML.

    Raises
    ------
    UsageError
        Flags that do not fit together, or with the file.
    GeodivError
        As `read_run`.
    """
    from .policy_file import parse
    from .run import Run, read_run

    policy = flags.get("policy")
    file = None if policy is None else read_run(policy)
    try:
        before = {} if policy is None or file is None else parse(file.text, policy)
        given = tables_of_flags(
            flags, Path(policy).parent if policy else Path("."), before.get("attribute", [])
        )
        if policy is not None and file is not None:
            if not given:
                return file
            joined = _joined(before, given)
            run = Run.of(joined, Path(policy).parent, f"{policy}, with the flags")
            return replace(run, files=(*file.files, *run.files))
        if not given.get("attribute"):
            raise UsageError(
                "expected -p policy.toml, or a grid, --person and --attribute as flags; see --help."
            )
        return Run.of(given, ".", "flags")
    except (PolicyError, GridError) as error:  # by itself the file is in order
        if isinstance(error, GridError) and flags.get("zones") is not None:
            raise
        raise UsageError(str(error)) from None


def tables_of_flags(
    flags: Mapping[str, Any], folder: Path, declared: Sequence[Mapping[str, Any]] = ()
) -> Tables:
    """The tables of a policy file that these flags stand for; paths become relative to `folder`.

    `declared` are the attributes of the policy file: ``--taxonomy`` is theirs where no flag names an attribute.
    """
    tables: Tables = {}
    for _, table, key, _, _ in _PLAIN:
        value = flags.get(f"{table}__{key}")
        if value is not None:
            tables.setdefault(table, {})[key] = _relative(value, folder) if key in _PATHS else value
    if grid := _grid(flags, folder):
        tables["grid"] = grid
    if attributes := _attributes(flags, folder, declared):
        tables["attribute"] = attributes
    if "reference" in tables:
        tables["reference"] = _scope(tables["reference"]) | tables["reference"]
    if flags.get("ladder") is not None:
        tables.setdefault("remedies", {})["ladder"] = [
            r.strip() for r in flags["ladder"].split(",") if r.strip()
        ]
    if flags.get("residual") is not None:
        tables.setdefault("remedies", {})["residual"] = flags["residual"]
    return tables


def _joined(file: Tables, given: Tables) -> Tables:
    tables: Tables = {**file, **{name: given[name] for name in ("grid", "attribute") if name in given}}
    for name in ("visits", "gates", "remedies", "release"):
        if name in given:
            tables[name] = {**file.get(name, {}), **given[name]}
    if (reference := given.get("reference")) is not None:
        before = file.get("reference", {})
        other = reference.get("scope", before.get("scope")) != before.get("scope")
        tables["reference"] = reference if other else {**before, **reference}
    return tables


def _grid(flags: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    chosen = [name for name in ("h3", "square", "zones") if flags.get(name) is not None]
    column = flags.get("cell_column")
    if len(chosen) > 1:
        raise UsageError(f"expected one grid, got {listed('--' + name for name in chosen)}.")
    for part, whole in (("square_crs", "square"), ("zones_id", "zones")):
        if (flags.get(part) is None) != (flags.get(whole) is None):
            raise UsageError(
                f"--{whole} and --{part.replace('_', '-')} belong together: expected both or neither."
            )
    if flags.get("contiguity") is not None and chosen != ["zones"]:
        raise UsageError("--contiguity belongs to --zones: expected both.")
    if not chosen:
        return {"kind": "column", "column": column} if column else {}
    if chosen == ["h3"]:
        grid = {"kind": "h3", "resolution": flags["h3"]}
    elif chosen == ["square"]:
        if column:
            raise UsageError("--square places visits by coordinates; --cell-column alone takes any cell ids.")
        grid = {"kind": "square", "size": flags["square"], "crs": flags["square_crs"]}
    else:
        grid = {"kind": "zones", "path": _relative(flags["zones"], folder), "id": flags["zones_id"]}
        if flags.get("contiguity") is not None:
            grid["contiguity"] = flags["contiguity"]
    return {**grid, "column": column} if column else grid


def _attributes(
    flags: Mapping[str, Any], folder: Path, declared: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    attributes: list[dict[str, Any]] = [{"column": column} for column in flags.get("attribute") or ()]
    for kind, key in (("ordinal", "order"), ("numeric", "edges")):
        for text in flags.get(kind) or ():
            column, items = _pair(f"--{kind}", text)
            values = [item.strip() for item in items.split(",")]
            attributes.append(
                {"column": column, "kind": kind, key: values if kind == "ordinal" else _edges(column, values)}
            )
    if not attributes and flags.get("missing"):
        raise UsageError(
            "--missing belongs to attributes that stand on the command line too, and there is none."
        )
    if not attributes and flags.get("taxonomy"):
        attributes = [dict(row) for row in declared]
    columns = [attribute["column"] for attribute in attributes]
    for text in flags.get("taxonomy") or ():
        column, path = text.split("=", 1) if text.split("=", 1)[0] in columns and "=" in text else ("", text)
        if not column and len(attributes) != 1:
            raise UsageError(
                f"--taxonomy {text}: expected COLUMN=FILE with one of {listed(columns)}."
                if columns
                else "--taxonomy belongs to an attribute, and there is none: give --attribute or a policy."
            )
        target = attributes[columns.index(column)] if column else attributes[0]
        target["taxonomy"] = _relative(path, folder)
        target.pop("taxonomy_version", None)
    if missing := list(flags.get("missing") or ()):
        for attribute in attributes:
            attribute["missing"] = missing
    return attributes


def _pair(flag: str, text: str) -> tuple[str, str]:
    column, sign, items = text.partition("=")
    if not sign or not column or not items:
        raise UsageError(f"{flag}: expected COLUMN=VALUE,VALUE,..., got {text!r}.")
    return column, items


def _edges(column: str, texts: Sequence[str]) -> list[float]:
    try:
        return [float(text) for text in texts]
    except ValueError:
        raise UsageError(f"--numeric {column}: expected numbers, got {listed(texts)}.") from None


def _scope(reference: Mapping[str, Any]) -> dict[str, str]:
    scopes = [scope for scope, keys in _SCOPES.items() if keys[0] in reference]
    if len(scopes) > 1:
        raise UsageError("expected one reference: --ring, --regions or --weights, got several.")
    return {"scope": scopes[0]} if scopes else {}


def _relative(path: str, folder: Path) -> str:
    return path if os.path.isabs(path) else Path(os.path.relpath(path, folder)).as_posix()
