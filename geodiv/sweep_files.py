"""The files of a sweep: a CSV, and a picture."""

from __future__ import annotations

from importlib import util
from pathlib import Path

import pandas as pd

from .atomic import replacing
from .errors import UsageError
from .spreadsheet import guarded

PICTURES = (".png", ".svg", ".pdf")
SHARES = ("kept", "pass_k", "pass_l", "pass_t", "pass_all", "coverage", "coverage_all")
"""Columns that are drawn, where the table has them: shares, 0 to 1."""


def write_table(frame: pd.DataFrame, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the table of a sweep as CSV, nulls as empty fields.

    Raises
    ------
    UsageError, WriteError
        It exists, or cannot be written.
    """
    with replacing(path, overwrite=overwrite) as (file,):
        frame.assign(attribute=frame["attribute"].map(guarded)).to_csv(file, index=False, lineterminator="\n")


def check_plot(path: str | Path) -> None:
    """Raise, before any work is done, when a picture cannot be drawn.

    Raises
    ------
    UsageError
        matplotlib is not installed, or the extension is none that it draws.
    """
    if util.find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib, which is not installed: pip install 'geodiv[map]'.")
    if Path(path).suffix.lower() not in PICTURES:
        raise UsageError(
            f"--plot: expected a name that ends in {', '.join(PICTURES)}, got '{Path(path).name}'."
        )


def write_plot(frame: pd.DataFrame, path: str | Path, *, overwrite: bool = False) -> None:
    """Draw the shares of a sweep by size, or by pair of thresholds, a panel for each attribute.

    Raises
    ------
    UsageError, WriteError
        As `check_plot`; it exists, or cannot be written.
    """
    check_plot(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = list(dict.fromkeys(frame["attribute"]))
    figure = Figure(figsize=(5.5 * max(len(columns), 1), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, max(len(columns), 1), squeeze=False, sharey=True)[0]
    for panel, column in zip(panels, columns, strict=False):
        rows = frame[frame["attribute"] == column]
        names = _names(rows)
        for share in SHARES:
            if share in rows and rows[share].notna().any():
                panel.plot(range(len(rows)), rows[share], marker="o", label=share)
        panel.set_xticks(range(len(rows)), names, rotation=0 if len(names) < 8 else 90)
        panel.set(title=str(column), ylim=(-0.02, 1.02), ylabel="share")
        panel.grid(alpha=0.3)
    panels[-1].legend(fontsize="small")
    with replacing(path, overwrite=overwrite) as (file,):
        figure.savefig(file, dpi=150)


def _names(rows: pd.DataFrame) -> list[str]:
    if "size" in rows:
        return [f"{size:g}" for size in rows["size"]]
    pairs = zip(rows["l_min"], rows["t_max"], strict=True)
    return [f"l {_or_off(low)}\nt {_or_off(high)}" for low, high in pairs]


def _or_off(threshold: float | None) -> str:
    return "off" if threshold is None or threshold != threshold else f"{threshold:g}"
