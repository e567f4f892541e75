"""One measurement: a Python file's function in a process of its own, its seconds and its peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Measured:
    """Medians over the repeats: stages in seconds of wall clock, peak memory of the process in MB."""

    seconds: dict[str, float]
    peak_mb: float


def measure(
    module: str, function: str, *arguments: str, repeats: int = 1, python: str = sys.executable
) -> Measured:
    """Run ``module.function(*arguments)``, which returns seconds by stage, `repeats` times."""
    found = [_once(python, module, function, arguments) for _ in range(repeats)]
    stages = found[0][0]
    seconds = {stage: median(one[0][stage] for one in found) for stage in stages}
    return Measured(seconds, median(one[1] for one in found))


def _once(
    python: str, module: str, function: str, arguments: tuple[str, ...]
) -> tuple[dict[str, float], float]:
    code = f"import json, {module} as m; print(json.dumps(m.{function}(*{list(arguments)!r})))"
    env = {**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    child = subprocess.Popen([python, "-c", code], stdout=subprocess.PIPE, text=True, env=env)
    assert child.stdout is not None
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{module}.{function} failed; its message stands above.")
    return json.loads(text.splitlines()[-1]), usage.ru_maxrss / 1024
