"""Leftovers: what killed runs could not remove, known by the number of the process in its name."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Container
from pathlib import Path


def clear(folder: Path, name: re.Pattern[str], mine: Container[Path] | None = None) -> None:
    """Remove the files and folders of processes that are no more. What cannot be removed stays.

    Parameters
    ----------
    folder : Path
    name : pattern
        Whole names; its only group is the number of the process.
    mine : container of Path, optional
        What this process holds. Anything else under its number is a former process's; None takes all of it for its own.
    """
    for path in folder.iterdir():
        found = name.fullmatch(path.name)
        if found is None:
            continue
        process = int(found[1])
        held = mine is None or path in mine if process == os.getpid() else _runs(process)
        if not held:
            remove(path)


def remove(path: Path) -> None:
    """Remove a file or a folder with all it holds, as far as that can be done; a link, not what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    """Whether a process is alive; taken for granted where asking would end it."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
