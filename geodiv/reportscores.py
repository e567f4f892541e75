"""The parts of a report that only its internal variant has: scores before, true figures after, rounds, work list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .columns import REMEDIES
from .page import table, text
from .wording import number

MOST_ROWS = 500
"""Rows of the work list in the page; the JSON twin holds all of them."""


def before_section(found: Mapping[str, Any]) -> str:
    """Cells that pass and fail as they stand, by attribute and gate."""
    rows, lines = [], []
    for one in found["before"]:
        rows.append((one["attribute"], *(f"{one[k]:,}" for k in ("cells", "below_k", "eligible", "passing"))))
        fails = ", ".join(
            f"{gate} {n:,}{_against(found, one['attribute'], gate)}" for gate, n in one["fails"].items()
        )
        needs = ", ".join(f"{REMEDIES.get(word, word)} {n:,}" for word, n in one["remedy"].items())
        lines.append(
            f"<p><b>{text(one['attribute'])}</b>. Fail: {text(fails or 'none')}. As they stand: "
            f"{text(needs)}.</p>"
        )
    head = ["Attribute", "Occupied cells", "Below k_min", "Judged", "Pass as they are"]
    return table(head, rows, numbers=1) + "".join(lines)


def final_section(found: Mapping[str, Any]) -> str:
    """The largest and smallest true figures of the published zones."""
    if not found["final"]:
        return ""
    head = ["Figure", *(one["attribute"] for one in found["final"])]
    names = [name for name in found["final"][0] if name != "attribute"]
    rows = [(name.replace("_", " "), *(_shown(one[name]) for one in found["final"])) for name in names]
    words = text(found["reference"]["words"])
    return (
        f'<div class="scroll">{table(head, rows, numbers=1)}</div><p>Distances, shifts and lifts are to '
        f"{words}. "
        "Fine figures of coarser zones are in this table: it must not be published.</p>"
    )


def rounds_section(found: Mapping[str, Any]) -> str:
    """What each round did."""
    if not found["rounds"]:
        return ""
    names = ("stage", "failing", "recoded", "merged", "suppressed", "zones")
    rows = [(r["round"] or "–", *(r[name] for name in names)) for r in found["rounds"]]
    return table(["Round", *(name.capitalize() for name in names)], rows, numbers=2)


def work_list_section(found: Mapping[str, Any]) -> str:
    """The cells that fail, the surest disclosure first."""
    rows = found["work_list"]
    if not rows:
        return "<p>No cell with at least k_min persons fails.</p>"
    names = (
        "cell_id",
        "attribute",
        "persons",
        "effective_fine",
        "top_value",
        "top_share",
        "distance",
        "reference_scope",
        "noise_floor",
        "fails",
        "final_remedy",
    )
    head = [
        "Cell",
        "Attribute",
        "Persons",
        "Effective",
        "Top value",
        "Top share",
        "Distance",
        "To",
        "Noise floor",
        "Fails",
        "Became",
    ]
    body = (
        [_shown(row[name]).replace(",", ", ") if name == "fails" else _shown(row[name]) for name in names]
        for row in rows[:MOST_ROWS]
    )
    left = len(rows) - MOST_ROWS
    more = f"<p>And {left:,} more in the JSON twin and in the work file.</p>" if left > 0 else ""
    return f'<div class="scroll dense">{table(head, body)}</div>{more}'


def _shown(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else number(value)


def _against(found: Mapping[str, Any], attribute: str, gate: str) -> str:
    rows = (r for r in found["thresholds"] if r["attribute"] == attribute and r["gate"] == gate)
    against = next((r["against"] for r in rows), None)
    return f" (to {against})" if gate == "t_max" and against else ""
