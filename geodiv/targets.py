"""Targets: whether files may be written, asked before any work is done."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .errors import UsageError


def check_targets(targets: Sequence[str | None], inputs: Sequence[str | None], overwrite: bool) -> None:
    """Raise before any work is done when a file that is to be written must not be.

    Parameters
    ----------
    targets : sequence of path or None
        Files that a command will write; None for one that was not asked for.
    inputs : sequence of path or None
        Files that it reads.
    overwrite : bool
        Whether targets may exist.

    Raises
    ------
    UsageError
        A target exists, is read too, or is named twice.
    """
    read = {os.path.realpath(path) for path in inputs if path is not None}
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
