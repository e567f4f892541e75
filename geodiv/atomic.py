"""Writing files whole or not at all: temporary files beside the target, then one replacement.

A lock beside the target keeps two runs apart and vanishes with its process, so whoever holds it may clear
away what a killed run left behind.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from .errors import UsageError, WriteError
from .interrupts import uninterrupted

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

_ADVICE = {
    errno.ENOSPC: "The disk is full: free some space, or write elsewhere.",
    errno.EDQUOT: "The quota is used up: free some space, or write elsewhere.",
    errno.EFBIG: "The file grew beyond what is allowed here: write elsewhere.",
    errno.EACCES: "The folder or the file may not be written: choose another, or change its permissions.",
    errno.EPERM: "The folder or the file may not be written: choose another, or change its permissions.",
    errno.EROFS: "The file system is read-only: write elsewhere.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.ENOLCK: "The file system knows no locks: write to a local folder and copy the file.",
    errno.ENOTSUP: "The file system knows no locks: write to a local folder and copy the file.",
}


@contextmanager
def replacing(*targets: str | Path, overwrite: bool = False) -> Iterator[tuple[Path, ...]]:
    """Temporary paths, one for each target, that become the targets when the block ends without an error.

    Parameters
    ----------
    *targets : path
        Files of one folder, replaced in this order once all of them are on the disk. Links are followed.
    overwrite : bool, default False
        Whether a target may exist.

    Yields
    ------
    tuple of Path
        Paths with the targets' names in a folder of their own beside them; each of them is to be written.

    Raises
    ------
    UsageError
        A target exists and `overwrite` is False.
    WriteError
        The folder is missing or read-only, the disk is full, a target is a folder, or another run or program
        holds it. What stood at the targets before still stands; temporary files are gone.

    Notes
    -----
    A process that is killed leaves every target whole, the former or the new one. Its temporary files are
    removed by the next run on the same target; one that is interrupted removes them itself. Between the replacement
    of two targets lies an instant that no file system closes; readers compare the files.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt") as (temporary,):
    ...     _ = temporary.write_text("whole")
    >>> [p.name for p in folder.iterdir()], (folder / "a.txt").read_text()
    (['a.txt'], 'whole')
    """
    files = [Path(os.path.realpath(target)) for target in targets]
    _check(files, overwrite)
    with _as_write_error(files[-1]), uninterrupted() as pause, ExitStack() as stack:
        for file in sorted(files):
            stack.enter_context(_lock(file))
        _check(files, overwrite)
        for file in files:
            _probe(file)
            _clear(file)
        staging = files[0].with_name(f".{files[0].name}.{os.getpid()}.tmp")
        staging.mkdir(mode=0o700)
        stack.callback(shutil.rmtree, staging, ignore_errors=True)
        temporary = tuple(staging / file.name for file in files)
        with pause():
            yield temporary
        for path, file in zip(temporary, files, strict=True):
            if file.exists():
                shutil.copymode(file, path)
            _sync(path)
        _replace(temporary, files)


def _check(files: Sequence[Path], overwrite: bool) -> None:
    folder = files[0].parent
    if not folder.is_dir():
        raise WriteError(
            f"expected a folder to write '{files[-1].name}' to, got '{folder}', which is none. Create it."
        )
    for file in files:
        if file.is_dir():
            raise WriteError(f"expected a file name, got '{file}', which is a folder.")
        if file.exists() and not overwrite:
            raise UsageError(
                f"'{file}' exists. Give --overwrite (in Python overwrite=True), or another name."
            )
        if file.exists() and not os.access(file, os.W_OK):
            raise WriteError(f"'{file}' is read-only. Write elsewhere, or make it writeable.")


@contextmanager
def _as_write_error(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        advice = _ADVICE.get(error.errno or 0, "Check the folder, or write elsewhere.")
        raise WriteError(f"'{file}' cannot be written: {reason}. {advice} Nothing was changed.") from error


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    path = file.with_name(f".{file.name}.lock")
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _hold(handle)
        except OSError as error:
            os.close(handle)
            if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
                raise WriteError(
                    f"another run is writing '{file}'. Wait for it, or write elsewhere."
                ) from None
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                break
        os.close(handle)  # the former holder removed this lock between our opening and locking it
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(handle)
        with suppress(OSError):  # Windows removes no open file
            if fcntl is None:
                path.unlink()


def _hold(handle: int) -> None:
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:  # pragma: no cover - Windows
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]


def _probe(file: Path) -> None:
    """Raise when another program is reading or writing a SQLite target; fold a journal left behind into it.

    A write-ahead log that outlives its database would be applied to the file that replaces it.
    """
    if not file.exists():
        return
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=0)) as database:
            database.execute("PRAGMA journal_mode=DELETE").fetchall()
            database.execute("BEGIN EXCLUSIVE")
            database.rollback()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise WriteError(
                f"'{file}' is in use by another program. Close it there (in QGIS: remove its layers), or "
                "write elsewhere."
            ) from None


def _clear(file: Path) -> None:
    ours = re.compile(rf"\.{re.escape(file.name)}\.\d+\.tmp")
    for path in file.parent.iterdir():
        if ours.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _replace(temporary: Sequence[Path], files: Sequence[Path]) -> None:
    done: list[tuple[Path, Path]] = []
    try:
        for path, file in zip(temporary, files, strict=True):
            former = path.with_name(f"{path.name}.former")
            if file.exists() and file != files[-1]:
                shutil.copy2(file, former)
            os.replace(path, file)
            done.append((former, file))
    except OSError:
        for former, file in done:
            if former.exists():
                os.replace(former, file)
            else:
                file.unlink()
        raise
    if os.name == "posix":
        with suppress(OSError):
            _sync(files[0].parent)
