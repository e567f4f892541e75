"""The verb ``taxonomy`` of the command line: check, suggest, diff."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .errors import TaxonomyError, UsageError, did_you_mean, listed
from .flags import engine_flags, engine_of_flags, run_flags, run_of_flags
from .progress import MODES, reporting
from .targets import check_ending, check_targets
from .text import in_lines, printable

if TYPE_CHECKING:
    import pandas as pd

    from .engines.protocol import Engine
    from .policy import Policy
    from .run import Run
    from .tabulation import Tabulation
    from .taxonomies.suggest import Suggestion, Suggestions
    from .taxonomies.wishes import Wishes
    from .taxonomy import Taxonomy

_json = click.option("--json", "as_json", is_flag=True, help="Results as JSON.")
_overwrite = click.option("--overwrite", is_flag=True, help="Replace files that exist.")
_of = click.option("--of", "column", metavar="COLUMN", help="The attribute, where there are several.")
_progress = click.option(
    "--progress", type=click.Choice(MODES), default="auto", show_default=True, help="On standard error."
)


@click.group()
def taxonomy() -> None:
    """Coarser values: what they do to these visits, which would help, and how two taxonomies differ."""


@taxonomy.command()
@click.argument("visits")
@run_flags
@engine_flags
@_of
@click.option("--plot", metavar="PNG", help="Picture of it to write as well; needs matplotlib.")
@_json
@_progress
@_overwrite
def check(
    visits: str,
    column: str | None,
    plot: str | None,
    as_json: bool,
    progress: str,
    overwrite: bool,
    **flags: Any,
) -> None:
    """Say of each coarse value which cells it clears and which it worsens: internal."""
    from .pictures import check_picture
    from .sources import files_of
    from .taxonomies.check import check_taxonomy

    if plot is not None:
        check_picture(plot)
    run = run_of_flags(flags)
    check_targets([plot], [*files_of(visits), *run.files], overwrite)
    engine = engine_of_flags(flags)
    with reporting(progress) as report:
        table, policy = _counted(run, visits, engine, report)
        found = check_taxonomy(table, policy, column)
    if plot is not None:
        from .taxonomy_plot import plot_check

        plot_check(found, plot, overwrite=overwrite)
    if as_json:
        figures: dict[str, Any] = {"attribute": found.attribute, "taxonomy": _identity(found.taxonomy)}
        figures |= {"levels": _records(found.levels), "labels": _records(found.labels)}
        click.echo(json.dumps(figures | {"findings": list(found.findings)}))
        return
    name = found.taxonomy
    click.echo(
        printable(
            f"'{found.attribute}', taxonomy {name.name} {name.version}".rstrip() + f" ({name.digest[:12]})"
        )
    )
    click.echo("\n" + _shown(found.levels))
    if len(found.labels):
        click.echo("\n" + _shown(found.labels.drop(columns="values")))
    click.echo("\n" + in_lines(f"- {line}" for line in found.findings))


@taxonomy.command()
@click.argument("visits")
@run_flags
@engine_flags
@_of
@click.option("-o", "--output", required=True, metavar="CSV", help="Taxonomy to write.")
@click.option("--fewest", type=click.IntRange(2), default=2, show_default=True, help="Labels at least.")
@click.option("--most", type=click.IntRange(2), help="Labels at most.")
@click.option("--join", multiple=True, metavar="A,B", help="Values that must share a label.")
@click.option(
    "--apart", multiple=True, metavar="A,B+C", help="Values, or groups of values, that must not share one."
)
@click.option(
    "--name", "names", multiple=True, metavar="LABEL=VALUE", help="What the group of a value is called."
)
@click.option("--labels", type=click.IntRange(2), help="Take the one with this many labels, not the best.")
@_json
@_progress
@_overwrite
def suggest(
    visits: str,
    column: str | None,
    output: str,
    labels: int | None,
    as_json: bool,
    progress: str,
    overwrite: bool,
    **flags: Any,
) -> int:
    """Search coarser values that keep most persons for the least that is lost, and write the best as CSV."""
    from .atomic import replacing
    from .sources import files_of
    from .taxonomies.suggest import suggest_taxonomy, taxonomy_csv

    check_ending("a taxonomy", output, (".csv",))
    wishes = _wishes(flags)
    run = run_of_flags(flags)
    check_targets([output], [*files_of(visits), *run.files], overwrite)
    engine = engine_of_flags(flags)
    with reporting(progress) as report:
        table, policy = _counted(run, visits, engine, report)
        found = suggest_taxonomy(table, policy, column, wishes=wishes)
    chosen = _chosen(found, labels)
    if chosen is not None:
        with replacing(output, overwrite=overwrite) as (file,):
            file.write_text(taxonomy_csv(chosen.taxonomy), encoding="utf-8")
    figures = {
        "attribute": found.attribute,
        "kept_without": found.kept_without,
        "failing": found.failing,
        "frontier": [_figures(s) for s in found.frontier],
        "chosen": None if chosen is None else _figures(chosen),
    }
    click.echo(json.dumps(figures) if as_json else _suggested(found, chosen, output))
    return int(chosen is None and found.failing > 0)


@taxonomy.command()
@click.argument("before")
@click.argument("after")
@_of
@click.option("--check", "strict", is_flag=True, help="Exit 1 when they differ.")
@_json
def diff(before: str, after: str, column: str | None, strict: bool, as_json: bool) -> int:
    """Say how two taxonomies differ, each a CSV or a release: values and labels added, removed and moved."""
    from .taxonomies.diff import diff_taxonomies

    found = diff_taxonomies(_read(before, column), _read(after, column))
    if as_json:
        names = (
            "before",
            "after",
            "added",
            "removed",
            "moved",
            "labels_added",
            "labels_removed",
            "levels",
            "same",
        )
        click.echo(json.dumps({name: getattr(found, name) for name in names}))
    else:
        click.echo(in_lines(found.words()))
    return int(strict and not found.same)


def _counted(run: Run, visits: str, engine: Engine, report: Any) -> tuple[Tabulation, Policy]:
    """The table and the policy; values outside a taxonomy stand for themselves, so that they can be named."""
    from .attribute import Nominal

    attributes = tuple(
        replace(a, unknown="own value") if isinstance(a, Nominal) and a.taxonomy is not None else a
        for a in run.attributes
    )
    table = replace(run, attributes=attributes).tabulate(visits, engine=engine, progress=report)
    return table, run.policy_for(table)


def _wishes(flags: dict[str, Any]) -> Wishes:
    from .taxonomies.wishes import Wishes

    names = {}
    for text in flags.pop("names"):
        label, sign, value = text.partition("=")
        if not sign or not label or not value:
            raise UsageError(f"--name: expected LABEL=VALUE, got {text!r}.")
        names[label] = value
    join = [[v.strip() for v in text.split(",")] for text in flags.pop("join")]
    apart = [
        [[v.strip() for v in side.split("+")] for side in text.split(",")] for text in flags.pop("apart")
    ]
    return Wishes(join=join, apart=apart, names=names, fewest=flags.pop("fewest"), most=flags.pop("most"))


def _chosen(found: Suggestions, labels: int | None) -> Suggestion | None:
    if labels is None:
        return found.best
    there = [s for s in found.frontier if s.labels == labels]
    if not there:
        known = listed(sorted({s.labels for s in found.frontier})) or "none"
        raise UsageError(f"--labels {labels}: none of the taxonomies found has that many; there are {known}.")
    return max(there, key=lambda s: s.kept)


def _figures(s: Suggestion) -> dict[str, Any]:
    return {
        "labels": s.labels,
        "kept": s.kept,
        "cleared": s.cleared,
        "information_lost": s.information_lost,
        "groups": [
            sorted(v for v, label in s.taxonomy.rows if label == name) for name in s.taxonomy.labels(1)
        ],
        "sensitive_only": list(s.sensitive_only),
        "digest": s.taxonomy.digest,
    }


def _suggested(found: Suggestions, chosen: Suggestion | None, output: str) -> str:
    lines = [
        f"'{found.attribute}': {found.failing:,} cells fail; {found.kept_without:.1%} of the persons in cells are in "
        "cells that pass as they are."
    ]
    if chosen is None:
        return in_lines([*lines, "No taxonomy that was tried keeps more: nothing was written."])
    lines += ["", "  labels   kept  cleared   lost"]
    for s in found.frontier:
        mark = "*" if s is chosen else " "
        lines.append(f"{mark} {s.labels:6d} {s.kept:6.1%} {s.cleared:8,d} {s.information_lost:6.1%}")
    lines += ["", f"'{output}' holds the one with the star:"]
    for name in chosen.taxonomy.labels(1):
        values = sorted(v for v, label in chosen.taxonomy.rows if label == name)
        lines.append(f"  {name}" + (f": {', '.join(values)}" if values != [name] else ""))
    for name in chosen.sensitive_only:
        lines.append(f"'{name}' consists of sensitive values only: it still tells.")
    return in_lines([*lines, "Give the labels names that readers understand before you publish under them."])


def _read(path: str, column: str | None) -> Taxonomy:
    """The taxonomy of a CSV, or of a release."""
    from .taxonomy import Taxonomy

    if Path(path).suffix.lower() == ".csv":
        return Taxonomy.read(path)
    from .formats import read_release

    table = read_release(path).taxonomy
    there = list(dict.fromkeys(table["attribute"]))
    if not there:
        raise TaxonomyError(
            f"'{path}': expected a release with a taxonomy, and none of its attributes has one."
        )
    if (column is None and len(there) != 1) or (column is not None and column not in there):
        raise TaxonomyError(
            f"'{path}': expected the taxonomy of one attribute, it has those of {listed(there)}. Name one "
            f"with --of.{did_you_mean(column, there) if column else ''}"
        )
    rows = table[table["attribute"] == (column or there[0])]
    levels = [name for name in rows.columns if name.startswith("level") and rows[name].notna().any()]
    name, version = rows["name"].iloc[0], rows["version"].iloc[0]
    return Taxonomy(tuple(rows[["value", *levels]].itertuples(index=False, name=None)), name, version or "")


def _identity(taxonomy: Taxonomy) -> dict[str, str]:
    return {"name": taxonomy.name, "version": taxonomy.version, "digest": taxonomy.digest}


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(k): _plain(v) for k, v in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and math.isnan(value) else value


def _shown(frame: pd.DataFrame) -> str:
    """A table in plain text: shares as percentages, yes and no."""
    rows = [
        list(map(str, frame.columns)),
        *([_cell(k, v) for k, v in row.items()] for row in _records(frame)),
    ]
    return in_lines(_line(row, _widths(rows)) for row in rows)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in ("cleared_share", "together", "information_lost"):
        return f"{value:.0%}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]


def _line(row: Iterable[str], widths: Sequence[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
