"""Draws before-after.png, the picture in the README: the fixture city before and after.

Run from anywhere, with the ``map`` extra installed: ``python docs/images/before_after.py``. The picture of *before* is
internal by nature; this city is invented, so it may be shown.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import geodiv as gd
from geodiv import demo, plots


def draw(path: Path) -> None:
    """Write the picture."""
    city = demo.fixtures()
    outcome = gd.read_run(city / "policy.toml").enforce(city / "visits.parquet")
    figure = Figure(figsize=(9, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    before, after = figure.subplots(1, 2, sharex=True, sharey=True)
    plots.failing_map(outcome.scores, ax=before)
    plots.remedy_map(outcome.release, ax=after)
    before.set_title("Before: what a cell gives away", fontsize=12)
    after.set_title("After: what was done about it", fontsize=12)
    for ax in (before, after):
        ax.set(xlabel="", ylabel="", xticks=[], yticks=[], xlim=(1.929, 2.077), ylim=(54.755, 54.845))
        for side in ax.spines.values():
            side.set_visible(False)
        ax.get_legend().set_bbox_to_anchor((0.5, 0.0))
    figure.savefig(path, dpi=90, metadata={"Software": None})


if __name__ == "__main__":
    draw(Path(__file__).with_name("before-after.png"))
