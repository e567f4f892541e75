"""Running the geodiv command as a program of its own: finding it, following its progress, cancelling it.

Nothing here needs QGIS. Nothing of geodiv is imported into QGIS's own Python, whose libraries it could break.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

# QGIS sets these for itself; another Python would load the wrong libraries with them.
_FOREIGN = (
    "PYTHONHOME",
    "PYTHONPATH",
    "PROJ_LIB",
    "PROJ_DATA",
    "GDAL_DATA",
    "GDAL_DRIVER_PATH",
    "QT_PLUGIN_PATH",
)
MISSING = (
    "The geodiv command was not found{where}. Install geodiv in a Python environment of its own "
    "(python3 -m venv geodiv-env, then geodiv-env/bin/pip install geodiv) and give the path of its geodiv command in "
    "Settings > Options > Processing > Providers > geodiv, or in the environment variable GEODIV_EXECUTABLE."
)


class CommandError(Exception):
    """The command is missing, or ended with an error; the text is for the user."""


class Cancelled(Exception):
    """The user cancelled, and the command was stopped."""


def find(setting: str = "") -> str:
    """The path of the geodiv command: the setting, else GEODIV_EXECUTABLE, else the PATH.

    Raises
    ------
    CommandError
        There is none; the text says how to install it.
    """
    for wanted in (setting, os.environ.get("GEODIV_EXECUTABLE", "")):
        if wanted.strip():
            found = shutil.which(os.path.expanduser(wanted.strip()))
            if found is None:
                raise CommandError(MISSING.format(where=f" at '{wanted.strip()}'"))
            return found
    found = shutil.which("geodiv")
    if found is None:
        raise CommandError(MISSING.format(where=""))
    return found


def run(command, *, progress, message, cancelled, allowed=(0,)):
    """Run the command to its end and return the object on its standard output.

    Parameters
    ----------
    command : list of str
        With ``--json --progress json``.
    progress : callable (stage, percent or None)
    message : callable (text)
        Gets each line of the command's messages.
    cancelled : callable () -> bool
        Asked several times a second.
    allowed : tuple of int
        Exit codes that are no errors.

    Raises
    ------
    CommandError
        It could not be started, or ended with another exit code.
    Cancelled
        `cancelled` said so; the command is gone, and its temporary files with it.
    """
    process = _start(command)
    lines: queue.Queue = queue.Queue()
    output: list[str] = []
    readers = [
        threading.Thread(target=_read, args=(process.stdout, output.append), daemon=True),
        threading.Thread(target=_read, args=(process.stderr, lines.put), daemon=True),
    ]
    for reader in readers:
        reader.start()
    said: list[str] = []
    while process.poll() is None or any(reader.is_alive() for reader in readers) or not lines.empty():
        if cancelled():
            _stop(process)
            raise Cancelled
        try:
            _take(lines.get(timeout=0.1), progress, message, said)
        except queue.Empty:
            continue
    if process.returncode not in allowed:
        raise CommandError("\n".join(said[-20:]) or f"geodiv ended with exit code {process.returncode}.")
    return _result(output)


def _start(command):
    environment = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    environment["PYTHONIOENCODING"] = "utf-8"
    options = {"creationflags": subprocess.CREATE_NO_WINDOW} if sys.platform == "win32" else {}
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment, encoding="utf-8", errors="replace", **options,
        )  # fmt: skip
    except OSError as error:
        raise CommandError(f"'{command[0]}' could not be started: {error.strerror or error}.") from error


def _read(stream, put):
    with stream:
        for line in stream:
            put(line.rstrip("\n"))


def _take(line, progress, message, said):
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if isinstance(event, dict) and event.get("event") == "progress":
        total = event.get("total") or 0
        progress(str(event.get("stage", "")), 100.0 * event.get("done", 0) / total if total else None)
    elif line.strip():
        said.append(line)
        message(line)


def _stop(process):
    """End the command; interrupted, it removes its temporary files itself."""
    if sys.platform == "win32":
        process.terminate()
    else:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _result(output):
    try:
        return dict(json.loads("\n".join(output)))
    except (ValueError, TypeError):
        return {}


def layer_source(path: str, layer: str) -> list[str]:
    """Arguments that name the visits: the file, and its layer where a file may hold several."""
    several = Path(path).suffix.lower() in (".gpkg", ".sqlite", ".gdb")
    return [path, "--layer", layer] if several and layer else [path]
