"""The verbs ``audit`` and ``sweep`` of the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .errors import UsageError
from .flags import engine_flags, engine_of_flags, run_flags, run_of_flags
from .progress import MODES, reporting
from .targets import check_ending, check_targets
from .text import in_lines, printable

if TYPE_CHECKING:
    import pandas as pd

    from .audits import Facts
    from .engines.protocol import Engine
    from .policy import Policy
    from .release import Release
    from .run import Run
    from .sources import Source

_json = click.option("--json", "as_json", is_flag=True, help="Results as JSON.")
_progress = click.option(
    "--progress", type=click.Choice(MODES), default="auto", show_default=True, help="On standard error."
)


@click.command()
@click.argument("release")
@click.option("--visits", help="The visits it was made of: everything is decided. Internal.")
@click.option("-p", "--policy", metavar="TOML", help="The policy that it has to hold; with --visits.")
@click.option("--against", metavar="RELEASE", help="Another release, to be subtracted from this one.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    help="Further column of the visits that is known, such as a facility id.",
)
@click.option(
    "--rule-out",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Values that a reader can rule out.",
)
@_json
@_progress
def audit(
    release: str,
    visits: str | None,
    policy: str | None,
    against: str | None,
    columns: Sequence[str],
    rule_out: int,
    as_json: bool,
    progress: str,
) -> int:
    """Attack RELEASE as a stranger would; with --visits, decide everything; with --against, subtract another
    release.

    Exits 1 when a gate is broken, the file contradicts itself or the visits, or subtracting discloses
    something.
    """
    from . import audits
    from .formats import read_release

    if (visits is None) != (policy is None):
        raise UsageError("--visits and -p belong together: expected both or neither.")
    if columns and visits is None:
        raise UsageError("--column names a column of the visits: give --visits too.")
    found: dict[str, Any] = {}
    file = read_release(release)
    with reporting(progress) as report:
        if report:
            report("attack", 0, 0)
        found["attack"] = audits.attack(file).figures()
        found["readers"] = _readers(file, rule_out)
        if visits is not None and policy is not None:
            if report:
                report("recount", 0, 0)
            found |= _with_visits(file, release, visits, policy, columns)
        if against is not None:
            found["difference"] = audits.difference(file, read_release(against)).figures()
    failed = any(found.get(name, {}).get("failed") for name in ("attack", "recount", "difference"))
    click.echo(json.dumps({"failed": failed, **found}) if as_json else audit_text(found))
    return int(failed)


def _readers(release: Release, rule_out: int) -> dict[str, Any]:
    from . import audits
    from .audits.tables import records

    minimal = audits.minimality(release)
    return {
        "ruling_out": records(audits.ruling_out(release, rule_out).groupby("attribute", sort=False).head(1)),
        "minimality": {
            "zones": len(minimal),
            "moved": float(minimal["moved"].mean()) if minimal["moved"].notna().any() else None,
            "largest": float(minimal["moved"].max()) if minimal["moved"].notna().any() else None,
        },
    }


def _with_visits(
    release: Release, file: str, visits: str, policy: str, columns: Sequence[str]
) -> dict[str, Any]:
    from . import audits
    from .audits.tables import records
    from .run import read_run
    from .sources import open_source

    run = read_run(policy)
    opened = open_source(visits, run.visits.get("layer"))  # once: standard input cannot be read again
    facts = audits.Facts.read(opened, grid=run.grid, attributes=run.attributes, **run.visits)
    rules = run.policy_for(facts)  # type: ignore[arg-type]  # asks for cells, grid and geometry only
    inside = audits.members(release, facts, rules)
    rows = audits.recheck(facts, rules)
    return {
        "recount": audits.recount(
            release, facts, rules, file=file if file.endswith(".gpkg") else None
        ).figures(),
        "truth": audits.truth(release, facts, rules).figures(),
        "members": {
            "rows": len(inside),
            "failing": int((inside["fails"] != "").sum()),
            "success": float(inside["success"].max()) if len(inside) else None,
        },
        "recheck": {
            "rows": len(rows),
            "flips": int(rows["flips"].sum()),
            "largest": records(rows[["cell_id", "attribute", "gap", "heaviest"]].head(1)),
        },
        "cross_attribute": _crossed(run, opened, facts, rules, release, columns),
    }


def _crossed(
    run: Run, visits: Source, facts: Facts, policy: Policy, release: Release, columns: Sequence[str]
) -> dict[str, Any]:
    from . import audits
    from .attribute import Nominal

    if columns:
        known = [Nominal(column) for column in columns]
        facts = audits.Facts.read(visits, grid=run.grid, attributes=[*run.attributes, *known], **run.visits)
    sensitive = [attribute.column for attribute in run.attributes]
    return audits.cross_attribute(facts, policy, release, told=sensitive).figures()


def audit_text(found: dict[str, Any]) -> str:
    """The figures of an audit in sentences."""
    attack = found["attack"]
    lines = [f"Attack on the published file: {attack['zones']} zones."]
    lines += _listed(
        attack["broken"], "gates broken for certain", ("cell_id", "attribute", "gate", "best", "threshold")
    )
    lines += _listed(attack["faults"], "contradictions", ("fault", "cell_id", "attribute", "detail"))
    lines += [
        f"  {attack['doubtful']} zones and attributes look as if a gate failed, "
        "by estimates that prove nothing"
    ]
    lines += [
        f"  largest {row['measure']} of {row['attribute']}: {_number(row['figure'])} "
        f"({row['value']}, zone {row['cell_id']}; {row['basis']})"
        for row in attack["largest"]
    ]
    for row in found["readers"]["ruling_out"]:
        lines.append(
            f"  who rules out {row['ruled_out']} of {row['attribute']} is sure to "
            f"{_number(row['certainty'])} at most ({row['value']}, zone {row['cell_id']})"
        )
    minimal = found["readers"]["minimality"]
    if minimal["moved"] is not None:
        lines.append(
            f"  who knows the rules learns from {minimal['zones']} coarser mixes: the expected largest "
            f"share moves by {_number(minimal['moved'])}, at most {_number(minimal['largest'])}"
        )
    lines += _visits_text(found) if "recount" in found else []
    if "difference" in found:
        two = found["difference"]
        lines.append(f"The other release: {two['overlaps']} pairs of zones share a cell.")
        if two["not_comparable"]:
            lines.append(f"  NOT COMPARABLE: they differ in {', '.join(two['not_comparable'])}")
        keys = ("gate", "cell_id", "other_id", "relation", "attribute", "value", "difference", "threshold")
        lines += _listed(two["disclosures"], "disclosures by subtraction", keys)
    return in_lines(lines)


def _visits_text(found: dict[str, Any]) -> list[str]:
    recount = found["recount"]
    lines = ["Against the visits (internal):"]
    lines += _listed(recount["broken"], "gates broken", ("cell_id", "attribute", "gate"))
    keys = ("what", "cell_id", "attribute", "value", "published", "counted")
    lines += _listed(recount["mismatches"], "figures that the visits do not give", keys)
    lines += [f"  NOT SAFE: {why}" for why in recount["residual"]]
    for row in found["truth"]["overall"]:
        lines.append(
            f"  {row['attribute']} {row['stage']} remedies: the best guess is right for "
            f"{_number(row['success'])} of the persons, the prior's for {_number(row['prior_success'])}; "
            f"worst zone {row['worst_zone']}: {_number(row['worst_success'])} against {_number(row['worst_prior'])}"
        )
    inside, rows = found["members"], found["recheck"]
    if inside["rows"]:
        lines.append(
            f"  who knows the member cell of a merged zone: {inside['failing']} of {inside['rows']} "
            f"members would fail alone; the best guess is right for {_number(inside['success'])} in the worst"
        )
    lines.append(f"  rows instead of persons would flip {rows['flips']} of {rows['rows']} verdicts")
    for row in found["cross_attribute"]["pairs"]:
        worst = (
            "no group is large enough"
            if row["worst"] is None
            else f"at worst {_number(row['worst'])} effective values"
        )
        lines.append(f"  {row['known']} tells {_number(row['uncertainty'])} of {row['told']}; {worst}")
    keys = ("known", "value", "told", "top", "cell_id", "conditional")
    lines += _listed(
        found["cross_attribute"]["disclosures"], "zones disclose one attribute through another", keys
    )
    return lines


def _listed(rows: list[dict[str, Any]], what: str, keys: Sequence[str], most: int = 10) -> list[str]:
    lines = [f"  {len(rows)} {what}"]
    for row in rows[:most]:
        told = (f"{key} {_number(row[key])}" for key in keys if row.get(key) is not None)
        lines.append(f"    {', '.join(told)}")
    return lines if len(rows) <= most else [*lines, f"    and {len(rows) - most} more"]


def _number(value: Any) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


@click.command()
@click.argument("visits")
@run_flags
@engine_flags
@click.option("--sizes", metavar="A,B,C", help="H3 resolutions, or sides of squares in metres.")
@click.option("--over-l", metavar="A,B,C", help="Values of l_min to try, at one size.")
@click.option("--over-t", metavar="A,B,C", help="Values of t_max to try, at one size.")
@click.option("--no-remedies", is_flag=True, help="Only the cells as they are; quicker.")
@click.option("-o", "--output", required=True, metavar="CSV", help="Table to write: internal.")
@click.option("--plot", metavar="PNG", help="Picture of it to write as well; needs matplotlib.")
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@_json
@_progress
def sweep(
    visits: str,
    sizes: str | None,
    over_l: str | None,
    over_t: str | None,
    no_remedies: bool,
    output: str,
    plot: str | None,
    overwrite: bool,
    as_json: bool,
    progress: str,
    **flags: Any,
) -> int:
    """Figures of VISITS by size of the cells, or by thresholds: the table from which to choose. Internal."""
    from .audits.tables import records
    from .pictures import check_picture
    from .sources import files_of
    from .sweep_files import write_plot, write_table

    check_ending("a sweep", output, (".csv",))
    if plot is not None:
        check_picture(plot)
    run = run_of_flags(flags)
    check_targets([output, plot], [*files_of(visits), *run.files], overwrite)
    engine = engine_of_flags(flags)
    numbers = _numbers("--sizes", sizes)
    over = _numbers("--over-l", over_l), _numbers("--over-t", over_t)
    with reporting(progress) as report:
        if not any(over):
            frame = _over_sizes(run, visits, numbers, not no_remedies, engine, report)
        else:
            frame = _over_thresholds(run, visits, numbers, over, not no_remedies, engine, report)
    write_table(frame, output, overwrite=overwrite)
    if plot is not None:
        write_plot(frame, plot, overwrite=overwrite)
    click.echo(json.dumps(records(frame)) if as_json else _table(frame))
    return 0


def _table(frame: pd.DataFrame) -> str:
    """A table in plain text; no name in it steers the terminal."""
    told = {"attribute": printable, "size": _number}
    texts = {column: frame[column].map(tell) for column, tell in told.items() if column in frame}
    return frame.round(3).assign(**texts).to_string(index=False, na_rep="-")


def _over_sizes(
    run: Run, visits: str, sizes: list[float], remedies: bool, engine: Engine, report: Any
) -> pd.DataFrame:
    from .audits import sweep_sizes

    if not sizes:
        raise UsageError("expected --sizes such as 6,7,8,9, or --over-l or --over-t.")
    return sweep_sizes(
        visits,
        sizes,
        grid=run.grid,
        attributes=run.attributes,
        policy=run.policy_for,
        remedies=remedies,
        engine=engine,
        progress=report,
        **run.visits,
    )


def _over_thresholds(
    run: Run,
    visits: str,
    sizes: list[float],
    over: tuple[list[float], list[float]],
    remedies: bool,
    engine: Engine,
    report: Any,
) -> pd.DataFrame:
    from dataclasses import replace

    from .audits import sweep_thresholds
    from .audits.sweep import sized

    if len(sizes) > 1:
        raise UsageError(
            "--over-l and --over-t try thresholds at one size: expected one of --sizes, got several."
        )
    run = replace(run, grid=sized(run.grid, sizes[0])) if sizes else run
    table = run.tabulate(visits, engine=engine, progress=report)
    policy = run.policy_for(table)
    return sweep_thresholds(table, policy, l_min=over[0], t_max=over[1], remedies=remedies, progress=report)


def _numbers(flag: str, text: str | None) -> list[float]:
    try:
        return [float(item) for item in (text or "").split(",") if item.strip()]
    except ValueError:
        raise UsageError(f"{flag}: expected numbers such as 6,7,8, got {text!r}.") from None


COMMANDS = (audit, sweep)
"""What the command line adds to its verbs."""
