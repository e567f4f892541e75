"""The part of a report on thresholds: each t with its reference, and the noise floor beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .page import table, text
from .wording import GATES, number, scope_words


def thresholds_section(found: Mapping[str, Any]) -> str:
    """Every threshold, what it is measured against, and how often each scope was used."""
    rows = [
        (
            r["attribute"],
            r["gate"],
            number(r["threshold"]),
            r["against"] or "the zone's own figures",
            GATES.get(r["gate"], ("", ""))[1],
        )
        for r in found["thresholds"]
    ]
    head = ["Attribute", "Gate", "Threshold", "Measured against", "What it bounds"]
    reference = found["reference"]
    noun = "zones" if found["variant"] == "public" else "scored rows"
    scopes = [(scope, scope_words(scope), f"{n:,}") for scope, n in reference["scopes"].items()]
    places = "".join(
        f"<p><b>{text(p['attribute'])}</b>: a coarser label passes every gate for the reader who knows "
        f"{text(p['name'])} ({p['places']:,} places), too.</p>"
        for p in (found.get("policy") or {}).get("places", [])
    )
    return (
        f'<div class="scroll">{table(head, rows)}</div>{places}'
        f"<p>Reference: {text(reference['words'])}. A zone's own cells are never part of its local "
        f"reference. A t bounds how far the "
        "reader's belief moves from this reference: a whole district of one kind may be near to its ring "
        "and far from the "
        "whole area.</p>" + table(["Scope", "In words", f"Judged against it ({noun})"], scopes, numbers=2)
    )


def noise_section(found: Mapping[str, Any]) -> str:
    """The noise floor of each attribute beside its t."""
    rows = found["noise_floor"]
    if not rows:
        return "<p>Not known: the file does not hold the counts that it takes.</p>"
    limits = {r["attribute"]: r for r in found["thresholds"] if r["gate"] == "t_max"}
    body = []
    for row in rows:
        limit = limits.get(row["attribute"])
        t_text = f"{number(limit['threshold'])}, to {limit['against']}" if limit else "off"
        body.append(
            (
                row["attribute"],
                row["of"],
                row["against"],
                t_text,
                f"{row['zones']:,}",
                _figure_of(row["median"]),
                _figure_of(row["largest"]),
            )
        )
    head = ["Attribute", "Of", "Against", "t_max", "Number", "Median", "Largest"]
    lines = [
        "<p>The distance to be expected by chance alone: of a zone whose persons were drawn from the "
        "reference itself. Where it "
        "comes near to t, k is too small for t.</p>",
        f'<div class="scroll">{table(head, body, numbers=4)}</div>',
    ]
    for row in rows:
        if row.get("fail_t"):
            lines.append(
                f"<p><b>{text(row['attribute'])}</b>: cells that fail t: {row['fail_t']:,}; of these no farther than "
                f"chance makes it for so few persons (1.25 times their noise floor): {row['fail_t_by_chance']:,}.</p>"
            )
        elif row.get("above_t"):
            lines.append(
                f"<p><b>{text(row['attribute'])}</b>: zones whose noise floor is above t: {row['above_t']:,}.</p>"
            )
    return "".join(lines)


def _figure_of(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
