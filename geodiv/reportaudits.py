"""The audits in a report: what was measured from outside, and what that can and cannot show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .page import table, text
from .wording import number

CAN = (
    "<p>What this can show: that the published file, read as a stranger would, breaks a gate or "
    "contradicts itself. A gate is "
    "called broken only when no hidden counts and no rounding that are possible satisfy it.</p>"
    "<p>What it cannot show: gates of zones that were judged against a ring, a region or weights are "
    "only estimated, since "
    "that reference is not published; nothing here knows the visits. With them, geodiv audit RELEASE "
    "--visits VISITS -p "
    "POLICY decides every gate and tells how often a reader's best guess is right.</p>"
)
INTERNAL = (
    "<p>Audits read the release, not this work file. To run them: <code>geodiv audit release.gpkg "
    "--visits VISITS -p "
    "policy.toml</code> decides every gate from the visits and tells how often a reader guesses right "
    "before and after; "
    "<code>geodiv audit release.gpkg --against OTHER.gpkg</code> subtracts another release; the public "
    "report of the release "
    "holds the attack on the published file alone.</p>"
)
MOST_ROWS = 50
BASES = {
    "counts": "follows from published counts",
    "rounded": "from published counts and the rounded mix",
    "estimate": "an estimate",
}


def audit_section(found: Mapping[str, Any]) -> str:
    """The audits of a public report, or how to run them."""
    made = found["audits"]
    if made is None:
        return INTERNAL
    if "error" in made:
        return f"<p>Not run: {text(made['error'])}</p>"
    words = (
        f"Distances, shifts and lifts are to {text(found['reference']['words'])}, or what comes nearest to it "
        "among the published."
    )
    return (
        CAN
        + _attack(made["attack"])
        + f"<p>{words}</p>"
        + _ruling_out(made["ruling_out"])
        + _minimality(made["minimality"])
    )


def _attack(attack: Mapping[str, Any]) -> str:
    broken, faults = attack["broken"], attack["faults"]
    verdict = (
        "A gate is broken, or the file contradicts itself."
        if attack["failed"]
        else "No gate is broken for certain, and the file does not contradict itself."
    )
    lines = [
        "<h3>Attack on the published file alone</h3>",
        f'<p class="verdict{" failed" if attack["failed"] else ""}">{verdict} {attack["zones"]:,} zones '
        f"were read; "
        f"{attack['doubtful']:,} zones and attributes look as if a gate failed, by estimates that prove "
        f"nothing.</p>",
        _rows("Broken gates", broken, ("cell_id", "attribute", "gate", "best", "threshold")),
        _rows("Contradictions", faults, ("fault", "cell_id", "attribute", "detail")),
    ]
    largest = [
        (
            r["attribute"],
            r["measure"],
            _number(r["figure"]),
            r["value"],
            r["cell_id"],
            BASES.get(r["basis"], r["basis"]),
        )
        for r in attack["largest"]
    ]
    head = ["Attribute", "Measure", "Largest", "Value", "Zone", "How it is known"]
    return "".join([*lines, f'<div class="scroll">{table(head, largest)}</div>'])


def _ruling_out(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    body = [
        (
            r["attribute"],
            r["ruled_out"],
            _number(r["certainty"]),
            r["value"],
            r["cell_id"],
            "estimated" if r["hidden"] else "from counts",
        )
        for r in rows
    ]
    head = ["Attribute", "Values ruled out", "Certainty at most", "Value", "Zone", "How it is known"]
    return f'<h3>A reader who can rule out a value</h3><div class="scroll">{table(head, body)}</div>'


def _minimality(found: Mapping[str, Any]) -> str:
    if found["moved"] is None:
        return ""
    return (
        "<h3>A reader who knows the rules</h3><p>That a zone is coarsened tells that its finest figures "
        "failed. Over "
        f"{found['zones']:,} coarser mixes, the expected largest share moves by {_number(found['moved'])} "
        f"on average, at most by "
        f"{_number(found['largest'])}.</p>"
    )


def _rows(caption: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    if not rows:
        return ""
    body = ([_number(row.get(name)) for name in names] for row in rows[:MOST_ROWS])
    more = f"<p>And {len(rows) - MOST_ROWS:,} more in the JSON twin.</p>" if len(rows) > MOST_ROWS else ""
    head = [name.replace("_", " ").capitalize() for name in names]
    return f'<div class="scroll">{table(head, body, caption=caption)}</div>{more}'


def _number(value: Any) -> Any:
    return f"{value:.3f}" if isinstance(value, float) else number(value) if value is not None else None
