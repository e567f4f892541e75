"""One measurement: a Python file's function in a process of its own, its seconds and its peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Measured:
    """The least over the repeats, since other work on the machine only adds: stages in seconds, peak memory in MB.

    A stage has its seconds of wall clock, and under ``<stage> cpu`` those of all processors together.
    """

    seconds: dict[str, float]
    peak_mb: float


def measure(
    module: str, function: str, *arguments: str, repeats: int = 1, python: str = sys.executable
) -> Measured:
    """Run ``module.function(*arguments)``, which returns seconds by stage, `repeats` times."""
    return in_turn((module, function, *arguments), repeats=repeats, python=python)[0]


def in_turn(*calls: tuple[str, ...], repeats: int = 1, python: str = sys.executable) -> list[Measured]:
    """Run several calls (module, function, arguments) one after the other, `repeats` times over."""
    rounds = [[_once(python, call[0], call[1], call[2:]) for call in calls] for _ in range(repeats)]
    found = []
    for runs in zip(*rounds, strict=True):
        seconds = {stage: min(seconds[stage] for seconds, _ in runs) for stage in runs[0][0]}
        found.append(Measured(seconds, min(peak for _, peak in runs)))
    return found


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
    seconds, peak = json.loads(text.splitlines()[-1]), usage.ru_maxrss / 1024
    said = ", ".join(f"{stage} {taken:.3f}" for stage, taken in seconds.items())
    print(f"{function} {' '.join(arguments)}: {said}; peak {peak:,.0f} MB", file=sys.stderr, flush=True)
    return seconds, peak
