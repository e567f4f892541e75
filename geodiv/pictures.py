"""Files of pictures: what can be drawn where, checked before any work is done; written whole or not at all."""

from __future__ import annotations

from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

from .atomic import replacing
from .errors import UsageError
from .targets import check_ending

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")


def check_picture(path: str | Path) -> None:
    """Raise, before any work is done, when a picture cannot be drawn.

    Raises
    ------
    UsageError
        matplotlib is not installed, or the extension is none of these.
    """
    if util.find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib, which is not installed: pip install 'geodiv[map]'.")
    check_ending("--plot", path, PICTURES)


def write_picture(figure: Figure, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a figure, in the format of the path's extension.

    Raises
    ------
    UsageError, WriteError
        As `check_picture`; it exists, or cannot be written.
    """
    check_picture(path)
    with replacing(path, overwrite=overwrite) as (file,):
        figure.savefig(file, dpi=150, format=Path(path).suffix[1:].lower())
