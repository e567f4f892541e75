"""A private folder for contributions: readable by its owner only, gone with what it was made for."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from ..errors import SourceError, UsageError
from ..interrupts import uninterrupted
from ..leftovers import clear, remove

_NAME = re.compile(r"geodiv-contributions\.(\d+)\.\w+")
_HELD: set[Path] = set()


def checked_folder(folder: str | Path | None, key: str) -> Path:
    """The folder in which private ones are made; that for temporary files unless one is named.

    Raises
    ------
    UsageError
        It is no folder, or cannot be written to.
    """
    path = Path(tempfile.gettempdir() if folder is None else folder).absolute()
    if not path.is_dir() or not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise UsageError(
            f"{key}: expected a folder that can be written to, got '{path}'. Create it, or name another."
        )
    return path


def private_folder(within: Path) -> Path:
    """A new folder with mode 0700; those that killed runs left beside it are removed first.

    Raises
    ------
    SourceError
        It cannot be made.
    """
    try:
        clear(within, _NAME, _HELD)
        path = Path(tempfile.mkdtemp(prefix=f"geodiv-contributions.{os.getpid()}.", dir=within))
    except OSError as error:
        raise SourceError(
            f"expected a folder for contributions in '{within}', got: {error.strerror or error}. Name another."
        ) from error
    _HELD.add(path)
    return path


def remove_folder(path: Path, process: int) -> None:
    """Remove a private folder, unless this is a copy of the process (`process`) that made it."""
    if os.getpid() == process:
        with uninterrupted():
            remove(path)
            _HELD.discard(path)
