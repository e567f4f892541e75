"""The verbs ``map`` and ``report`` of the command line."""

from __future__ import annotations

from pathlib import Path

import click

from .targets import check_targets
from .text import printable

_overwrite = click.option("--overwrite", is_flag=True, help="Replace files that exist.")


@click.command(name="map")
@click.argument("release")
@click.option("-o", "--output", required=True, metavar="HTML", help="Page to write; it needs no network.")
@click.option(
    "--tiles", metavar="URL", help="Map tiles to draw under the zones, with {z}, {x}, {y}; needs a network."
)
@click.option("--attribution", default="", metavar="TEXT", help="Whose tiles they are.")
@_overwrite
def map_(release: str, output: str, tiles: str | None, attribution: str, overwrite: bool) -> int:
    """Write the map of RELEASE as one HTML file: published figures only."""
    from .formats import read_release
    from .page import check_page
    from .sidecar import sidecar
    from .webmap import write_map

    check_page(output)
    check_targets([output], [release, sidecar(release)], overwrite)
    write_map(read_release(release), output, tiles=tiles, attribution=attribution, overwrite=overwrite)
    click.echo(printable(output))
    return 0


@click.command()
@click.argument("file", metavar="RELEASE|WORK")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="HTML",
    help="Report to write, with a .json after its name beside it.",
)
@_overwrite
def report(file: str, output: str, overwrite: bool) -> int:
    """Write the report of a release (public), or of a work file (internal), for a reviewer."""
    from .formats import read_release
    from .page import check_page
    from .report import twin, write_report
    from .sidecar import sidecar
    from .workfile import is_work, read_work

    check_page(output)
    check_targets([output, twin(output)], [file, sidecar(file)], overwrite)
    internal = Path(file).suffix.lower() == ".gpkg" and is_work(file)
    write_report(read_work(file) if internal else read_release(file), output, overwrite=overwrite)
    click.echo(printable(f"{output}: {'INTERNAL, not for publication' if internal else 'public'}"))
    return 0


COMMANDS = (map_, report)
"""What the command line adds to its verbs."""
