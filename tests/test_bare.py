"""geodiv without any extra; `ci/bounds.py bare` runs the same in an environment that really has none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import bare


def test_everything_that_needs_no_extra_works_and_what_needs_one_names_it() -> None:
    script = Path(bare.__file__)
    env = {**os.environ, "PYTHONPATH": str(script.parent.parent)}
    done = subprocess.run([sys.executable, str(script), "--hide"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_hidden_is_what_only_extras_ask_for() -> None:
    hidden = bare.optional()
    assert {"matplotlib", "folium", "pytest", "hypothesis"} <= hidden
    assert not {"numpy", "pandas", "pyarrow", "click", "rich", "libpysal", "packaging"} & hidden
