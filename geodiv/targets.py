"""Targets: whether files may be written, asked before any work is done."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from .errors import UsageError


def check_targets(
    targets: Iterable[str | Path | None], inputs: Iterable[str | Path], overwrite: bool
) -> None:
    """Raise before any work is done when a file that is to be written must not be.

    Parameters
    ----------
    targets : iterable of path or None
        Files that a command will write; None for one that was not asked for.
    inputs : iterable of path
        Files that it reads.
    overwrite : bool
        Whether targets may exist.

    Raises
    ------
    UsageError
        A target exists, is read too, or is named twice.
    """
    read = {os.path.realpath(path) for path in inputs}
    seen: set[str] = set()
    for target in targets:
        if target is None:
            continue
        real = os.path.realpath(target)
        if real in read:
            raise UsageError(
                f"'{target}' is read by this run and cannot be written by it too. Give another name."
            )
        if real in seen:
            raise UsageError(f"'{target}' would be written twice by this run. Give different names.")
        if os.path.exists(real) and not overwrite:
            raise UsageError(f"'{target}' exists. Give --overwrite to replace it, or another name.")
        seen.add(real)


def check_ending(what: str, path: str | Path | None, endings: Sequence[str]) -> None:
    """Raise unless the name of a file that is to be written ends as its format does; None is no file.

    Parameters
    ----------
    what : str
        What is written, as the message calls it.
    endings : sequence of str
        In lower case, with the dot.

    Raises
    ------
    UsageError
        It ends otherwise: it would open as something that it is not.
    """
    if path is not None and Path(path).suffix.lower() not in endings:
        raise UsageError(
            f"{what}: expected a name that ends in {', '.join(endings)}, got '{Path(path).name}'."
        )
