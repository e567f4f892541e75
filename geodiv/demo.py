"""The fixture city, end to end: what ``geodiv demo`` does."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path

from .enforcement import Outcome
from .errors import SourceError, UsageError, WriteError
from .run import read_run
from .sidecar import sidecar

VISITS, POLICY = "visits.parquet", "policy.toml"


def fixtures() -> Path:
    """Folder of the fixture city: in the installed package, or beside it in a checkout.

    Raises
    ------
    SourceError
        Neither is there: the installation is not complete.
    """
    package = Path(str(resources.files("geodiv")))
    for folder in (package / "fixtures", package.parent / "fixtures"):
        if (folder / POLICY).is_file() and (folder / VISITS).is_file():
            return folder
    raise SourceError(
        f"expected the fixture city in '{package / 'fixtures'}', got none. Install geodiv again."
    )


def make_demo(folder: Path, *, progress: Callable[[str, int, int], None] | None = None) -> Outcome:
    """Enforce the fixture's policy on its visits and write release.gpkg, release.json and work.gpkg to `folder`.

    Files of an earlier demo are replaced; other files of these names are left alone.

    Raises
    ------
    UsageError
        A file of such a name is not from a demo.
    WriteError
        The folder cannot be made or written to.
    """
    city = fixtures()
    run = read_run(city / POLICY)
    release, work = folder / "release.gpkg", folder / "work.gpkg"
    _check_own(release, work, run.publication.title)
    outcome = run.enforce(city / VISITS, progress=progress)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"expected to make the folder '{folder}', got: {error.strerror or error}.") from None
    outcome.release.to_file(release, overwrite=True)
    outcome.to_work(work, overwrite=True)
    return outcome


def _check_own(release: Path, work: Path, title: str) -> None:
    from .geopackage import read_release

    files = [path for path in (release, sidecar(release), work) if path.exists()]
    if not files:
        return
    own = False
    if release.exists():
        try:
            own = read_release(release).metadata.get("title") == title
        except SourceError:
            own = False
    if not own:
        raise UsageError(f"'{files[0]}' exists and is not from a demo. Choose another folder with -o.")
