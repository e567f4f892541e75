"""The command line: one function per verb. Parse, call, print."""

from __future__ import annotations

import io
import json
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from . import __version__
from .cli_audits import COMMANDS as AUDIT_COMMANDS
from .cli_maps import COMMANDS as MAP_COMMANDS
from .cli_taxonomy import taxonomy
from .errors import GeodivError
from .flags import engine_flags, engine_of_flags, run_flags, run_of_flags
from .interrupts import Ended, ending_in_order
from .progress import MODES, reporting
from .targets import check_ending, check_targets
from .text import in_lines, printable

INTERRUPTED = 130
BROKEN_PIPE = 141
_TOO_LARGE = (
    "this run needs more memory than there is. Take larger cells, fewer values (a taxonomy, or missing = [...]), or "
    "fewer columns. Nothing half-written is left."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    0 ok, 1 a gate or audit failed, 2 usage, 3 input unreadable or invalid, 4 not converged, 130 interrupted, 141 when
    nobody reads what is printed, 143 ended by SIGTERM, 129 by SIGHUP.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal's encoding does not hold
    code = run(arguments)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:  # told already; what could not be printed has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit code of one command; what goes wrong by a user's mistake is one message on standard error."""
    try:
        with ending_in_order(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = cli.main(args=arguments, prog_name="geodiv", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        click.echo(in_lines(shown.getvalue().splitlines()), err=True)
        return error.exit_code
    except GeodivError as error:
        click.echo(f"geodiv: {error}", err=True)
        return error.exit_code
    except Ended as ended:
        with suppress(OSError):  # a terminal that was closed
            click.echo(f"geodiv: ended by {ended.name}. Nothing half-written is left.", err=True)
        return ended.code
    except SystemExit:  # click's word for a pipe that nobody reads from
        return BROKEN_PIPE
    except OSError as error:
        click.echo(printable(f"geodiv: {error.filename or 'a file'}: {error.strerror or error}."), err=True)
        return GeodivError.exit_code
    except MemoryError:
        click.echo(f"geodiv: {_TOO_LARGE}", err=True)
        return GeodivError.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("geodiv: interrupted. Nothing half-written is left.", err=True)
        return INTERRUPTED


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(str(message))


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="geodiv")
def cli() -> None:
    """Check that a map of people's visits does not give away what people did in a cell, and repair it.

    Exit codes: 0 ok, 1 a gate or audit failed, 2 usage, 3 input unreadable or invalid, 4 not converged.
    """


_json = click.option("--json", "as_json", is_flag=True, help="Results as JSON.")
_overwrite = click.option("--overwrite", is_flag=True, help="Replace files that exist.")
_progress = click.option(
    "--progress", type=click.Choice(MODES), default="auto", show_default=True, help="On standard error."
)
_rejects = click.option(
    "--rejects", metavar="CSV", help="Write the rows that were not counted, with reasons."
)


@cli.command()
@click.option(
    "-o", "--output", default="geodiv-demo", show_default=True, metavar="DIR", help="Folder for the files."
)
@_json
@_progress
def demo(output: str, as_json: bool, progress: str) -> None:
    """The fixture city, end to end: release.gpkg, release.json and work.gpkg."""
    from .demo import make_demo
    from .summary import demo_text, public_figures

    with reporting(progress) as report:
        outcome = make_demo(Path(output), progress=report)
    figures = public_figures(outcome.release.metadata)
    click.echo(json.dumps(figures) if as_json else demo_text(outcome, output))


@cli.command()
@click.argument("visits")
@click.option("-o", "--output", metavar="TOML", help="File to write; standard output unless given.")
@click.option("--person", help="Column that names the person, when its name does not tell.")
@click.option("--layer", help="Layer to read, where a file has several.")
@click.option("--crs", help="CRS of the coordinates, when the file does not say it.")
@click.option(
    "--k", "k_min", type=click.IntRange(1), default=10, show_default=True, help="Fewest persons in a zone."
)
@_overwrite
def init(
    visits: str,
    output: str | None,
    person: str | None,
    layer: str | None,
    crs: str | None,
    k_min: int,
    overwrite: bool,
) -> None:
    """Write a commented policy.toml for VISITS: columns found, values listed, a cell size suggested."""
    from .atomic import replacing
    from .sources import files_of
    from .suggest import suggested_policy

    if output is not None:
        check_ending("a policy", output, (".toml",))
        check_targets([output], files_of(visits), overwrite)
    text = suggested_policy(visits, person=person, layer=layer, crs=crs, k_min=k_min)
    if output is None:
        click.echo(text, nl=False)
    else:
        with replacing(output, overwrite=overwrite) as (file,):
            file.write_text(text, encoding="utf-8")


@cli.command()
@click.argument("visits")
@run_flags
@click.option("-o", "--output", metavar="GPKG", help="Work file to write: internal.")
@click.option("--check", is_flag=True, help="Exit 1 when a cell fails.")
@_json
@_progress
@engine_flags
@_rejects
@_overwrite
def score(
    visits: str,
    output: str | None,
    check: bool,
    as_json: bool,
    progress: str,
    rejects: str | None,
    overwrite: bool,
    **flags: Any,
) -> int:
    """Score every cell of VISITS: internal, for those who may see the visits."""
    from .counsel import advice
    from .districts import failing_districts
    from .geopackage import check_work
    from .scores import score as scored
    from .sources import files_of
    from .summary import score_figures, score_text
    from .work import write_scores

    check_work(output)
    run = run_of_flags(flags)
    check_targets([output, rejects], [*files_of(visits), *run.files], overwrite)
    with reporting(progress) as report:
        table = run.tabulate(visits, engine=engine_of_flags(flags), rejects=rejects, progress=report)
        policy = run.policy_for(table)
        scores = scored(table, policy)
        if output is not None:
            write_scores(table, scores, output, run.publication.title, policy=policy, overwrite=overwrite)
    figures = score_figures(scores, table.intake) | {
        "districts": failing_districts(table, policy, scores).to_dict("records"),
        "advice": list(advice(table, policy, scores)),
    }
    _say(*_notes(table), *figures["advice"])
    click.echo(json.dumps(figures) if as_json else score_text(figures, policy.k_min))
    return int(check and bool((scores["fails"] != "").any()))


@cli.command()
@click.argument("visits")
@run_flags
@click.option(
    "-o", "--output", required=True, metavar="GPKG", help="Release to write, with a .json beside it."
)
@click.option("--work", metavar="GPKG", help="Work file to write as well: internal.")
@click.option(
    "--report", "report_", metavar="HTML", help="Public report to write as well, .json after its name."
)
@_json
@_progress
@engine_flags
@_rejects
@_overwrite
def enforce(
    visits: str,
    output: str,
    work: str | None,
    report_: str | None,
    as_json: bool,
    progress: str,
    rejects: str | None,
    overwrite: bool,
    **flags: Any,
) -> int:
    """Repair what fails in VISITS, count again until nothing does, and write the release."""
    from .counsel import advice
    from .formats import format_of
    from .geopackage import check_work
    from .page import check_page
    from .sidecar import sidecar
    from .sources import files_of
    from .summary import public_figures, release_text

    format_of(output)
    check_work(work)
    check_page(report_)
    beside = None if report_ is None else f"{report_}.json"
    run = run_of_flags(flags)
    targets: list[str | Path | None] = [output, sidecar(output), work, rejects, report_, beside]
    check_targets(targets, [*files_of(visits), *run.files], overwrite)
    with reporting(progress) as report:
        table = run.tabulate(visits, engine=engine_of_flags(flags), rejects=rejects, progress=report)
        outcome = run.enforce_table(table, progress=report)
        outcome.release.to_file(output, overwrite=overwrite)
        if work is not None:
            outcome.to_work(work, overwrite=overwrite)
        if report_ is not None:
            from .report import write_report

            write_report(outcome.release, report_, overwrite=overwrite)
    figures = public_figures(outcome.release.metadata)
    _say(*_notes(table), *advice(table, outcome.policy, outcome.scores))
    click.echo(json.dumps(figures) if as_json else release_text(figures))
    return int(figures["zones"] == 0)


@cli.command()
@click.argument("file")
@click.option("--layer", help="Layer to read, where a file has several.")
@_json
def info(file: str, layer: str | None, as_json: bool) -> None:
    """Say what FILE is: a release, a work file, a policy or visits."""
    from .info import described, described_text

    found = described(file, layer)
    click.echo(json.dumps(found) if as_json else described_text(found))


def _notes(table: Any) -> tuple[str, ...]:
    """What looks suspicious in the visits, and what was done to a layer of zones."""
    return (*table.intake.notes, *getattr(table.grid, "notes", ()))


def _say(*notes: str) -> None:
    for note in notes:
        click.echo(printable(f"geodiv: note: {note}"), err=True)


for _command in (*AUDIT_COMMANDS, *MAP_COMMANDS, taxonomy):
    cli.add_command(_command)
