"""The files of a sweep: a CSV, and a picture."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from .atomic import replacing
from .pictures import check_picture, write_picture
from .spreadsheet import guarded


def write_table(frame: pd.DataFrame, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the table of a sweep as CSV, nulls as empty fields.

    Raises
    ------
    UsageError, WriteError
        It exists, or cannot be written.
    """
    with replacing(path, overwrite=overwrite) as (file,):
        frame.assign(attribute=frame["attribute"].map(guarded)).to_csv(file, index=False, lineterminator="\n")


def write_plot(frame: pd.DataFrame, path: str | Path, *, overwrite: bool = False) -> None:
    """Draw a sweep by size, or by pair of thresholds, a panel for each attribute, as `plots` draws them.

    Raises
    ------
    UsageError, WriteError
        As `geodiv.pictures.write_picture`.
    """
    check_picture(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from .sweep_plots import size_plot, threshold_plot

    draw = size_plot if "size" in frame else threshold_plot
    columns = list(dict.fromkeys(frame["attribute"]))
    figure = Figure(figsize=(6.4 * len(columns), 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    for panel, column in zip(figure.subplots(1, len(columns), squeeze=False)[0], columns, strict=True):
        draw(frame, attribute=column, ax=panel)
    write_picture(figure, path, overwrite=overwrite)
