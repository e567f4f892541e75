"""Summaries of a run: figures for machines, sentences for people. Public ones hold nothing that a release does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .errors import SourceError, listed
from .policy import GATES
from .text import in_lines

if TYPE_CHECKING:
    import pandas as pd

    from .enforcement import Outcome
    from .intake import Intake

REMEDIES = ("publish", "publish_coarsened", "publish_merged")

KINDS_OF_DISCLOSURE: tuple[tuple[str, str], ...] = (
    ("incidence_max", "nearly everybody who was there did one same thing ({top}), whatever else they did"),
    ("tier_incidence_max", "nearly everybody who was there did something that is marked sensitive"),
    ("tier_max", "a visit there was most likely for something that is marked sensitive, whichever it was"),
    ("l_min", "the visits there are nearly all of one kind ({top}): being there tells what was done"),
    ("c_max", "whoever can rule out a few kinds knows the rest ({top})"),
    ("share_max", "one kind of visit ({top}) stands out far above all others"),
    (
        "shift_max",
        "being there changes what one would guess about a visit ({top} stands out from its surroundings)",
    ),
    ("lift_max", "a rare kind of visit is much more likely there than elsewhere"),
    ("t_max", "the mix of visits there is far from that of its surroundings ({top} stands out)"),
)
"""What a failing gate means to somebody who was never told about gates, the plainest first."""

MOST_DISTRICTS = 5
"""Districts that the text of `geodiv score` tells of; the JSON holds all of them."""


def public_figures(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of ``enforce --json``: all of them stand in the release's metadata.

    Parameters
    ----------
    metadata : mapping
        Of a `Release`.

    Returns
    -------
    dict
        cells, zones, persons, rounds, remedies, not_published, coverage, reference, dropped.

    Raises
    ------
    SourceError
        The metadata lacks one of them.
    """
    keys = (
        "cells",
        "zones",
        "persons",
        "rounds",
        "remedies",
        "not_published",
        "coverage",
        "reference",
        "dropped",
    )
    if lacking := [key for key in keys if key not in metadata]:
        raise SourceError(
            f"expected a release whose metadata holds its figures, got none called {listed(lacking)}. Give the file as "
            "geodiv wrote it, with the JSON beside it."
        )
    return {key: metadata[key] for key in keys}


def score_figures(scores: pd.DataFrame, intake: Intake) -> dict[str, Any]:
    """The figures of ``score --json``: internal, cells by gate and remedy.

    Parameters
    ----------
    scores : DataFrame
        As `geodiv.score` gives them, one row per cell and attribute.
    intake : Intake

    Returns
    -------
    dict
        cells, eligible, failing (eligible cells that fail in any attribute), attributes (by column: passing, fails by
        gate, remedy), dropped.
    """
    below = scores["fails"].map(lambda text: "k_min" in text.split(","))
    failing = scores["fails"] != ""
    attributes = {}
    for column, rows in scores[~below].groupby("attribute", sort=False):
        gates = Counter(gate for text in rows["fails"] for gate in text.split(",") if gate)
        attributes[str(column)] = {
            "passing": int((rows["fails"] == "").sum()),
            "fails": {gate: gates[gate] for gate in (*GATES, "no_reference") if gate in gates},
            "remedy": {
                str(k): int(v) for k, v in rows["remedy"].value_counts(sort=False).sort_index().items()
            },
        }
    return {
        "cells": int(scores["cell_id"].nunique()),
        "eligible": int(scores["cell_id"][~below].nunique()),
        "failing": int(scores["cell_id"][failing & ~below].nunique()),
        "attributes": attributes,
        "dropped": dict(intake.dropped),
    }


def score_text(figures: Mapping[str, Any], k_min: int) -> str:
    """`score_figures`, with the districts that fail, for people."""
    eligible = figures["eligible"]
    lines = [
        f"{figures['cells']:,} {'cell' if figures['cells'] == 1 else 'cells'} with visits, {eligible:,} of them with "
        f"at least {k_min} persons (k_min).",
        f"Of these, {figures['failing']:,} {'gives' if figures['failing'] == 1 else 'give'} something away.",
    ]
    for column, found in figures["attributes"].items():
        lines.append(f"{column}: {found['passing']:,} pass as they are.")
        if found["fails"]:
            lines.append("  fail: " + ", ".join(f"{gate} {n:,}" for gate, n in found["fails"].items()))
            coarser = found["remedy"].get("publish_coarsened", 0)
            lines.append(f"  coarser values alone would clear {coarser:,}.")
    for district in figures["districts"][:MOST_DISTRICTS]:
        shared = f", most often {district['top_value']!r}" if district["top_value"] else ""
        lines.append(
            f"A whole district fails: {district['n_cells']} neighbouring cells, {district['attribute']}{shared} "
            f"({district['gates']}): {district['cause']}. The first: {district['cells'].split()[0]}."
        )
    if len(figures["districts"]) > MOST_DISTRICTS:
        lines.append(
            f"{len(figures['districts']) - MOST_DISTRICTS:,} smaller districts fail too: --json lists them."
        )
    return in_lines(lines + dropped_lines(figures["dropped"]))


def dropped_lines(dropped: Mapping[str, int]) -> list[str]:
    """One line that tells which rows were not counted; none when all were."""
    if not any(dropped.values()):
        return []
    return ["Rows not counted: " + ", ".join(f"{reason} {n:,}" for reason, n in dropped.items() if n) + "."]


def release_text(figures: Mapping[str, Any]) -> str:
    """`public_figures` for people."""
    remedies = figures["remedies"]
    if not figures["zones"]:
        lines = ["Nothing is published: no zone passes every gate. The release is empty."]
    else:
        lines = [
            f"Published: {_many(figures['zones'], 'zone')} of {_many(figures['cells'], 'cell')}, "
            f"{figures['persons']:,} persons, coverage {figures['coverage']:.2f}.",
            f"  as they are        {remedies.get('publish', 0):>6,}",
            f"  coarser values     {remedies.get('publish_coarsened', 0):>6,}",
            f"  joined neighbours  {remedies.get('publish_merged', 0):>6,}",
            "Judged against: "
            + ", ".join(f"{scope} {n:,}" for scope, n in figures["reference"].items())
            + ".",
        ]
    lines.append(f"Not published: {_many(figures['not_published'], 'cell')}. Rounds: {figures['rounds']}.")
    return in_lines(lines + dropped_lines(figures["dropped"]))


def demo_text(outcome: Outcome, folder: str) -> str:
    """What ``geodiv demo`` tells somebody who has never seen geodiv. The city is invented."""
    scores, figures = outcome.scores, public_figures(outcome.release.metadata)
    k_min, done = outcome.policy.k_min, figures["remedies"]
    judged = scores[~scores["fails"].map(lambda text: "k_min" in text.split(","))]
    failing = judged[judged["fails"] != ""]
    merged = outcome.release.cells
    joined = int(merged["n_members"][merged["remedy"] == "publish_merged"].sum())
    lines = [
        "An invented city. Its visits were counted as distinct persons in "
        f"{scores['cell_id'].nunique():,} hexagons; {judged['cell_id'].nunique():,} of them saw at least {k_min} "
        "persons, enough for a crowd.",
        f"Yet {failing['cell_id'].nunique():,} of these would have told what their visitors did. For instance:",
        *(f"  - {kind}" for kind in _kinds(failing)),
        "",
        f"What was done, and counted again until nothing failed ({_many(figures['rounds'], 'round')}):",
        f"  {done['publish']:>4} zones are published as they are",
        f"  {done['publish_coarsened']:>4} zones with coarser values (the place stays, detail of what was done goes)",
        f"  {done['publish_merged']:>4} zones joined from {joined} neighbouring cells",
        f"  {figures['not_published']:>4} cells are not published (too few persons, or nothing helped)",
        f"The map keeps {figures['coverage']:.0%} of the crowd.",
        "",
        "Files:",
        f"  {folder}/release.gpkg   the map to publish",
        f"  {folder}/release.json   what was decided and by which thresholds, to publish with it",
        f"  {folder}/work.gpkg      before and after, every measure: internal, do not publish",
        "In QGIS: drag release.gpkg into the window; its layer 'cells' comes coloured by remedy.",
        "Your own visits: geodiv init VISITS > policy.toml, read it, then",
        "  geodiv enforce VISITS -p policy.toml -o release.gpkg",
    ]
    return in_lines(lines)


def _kinds(failing: pd.DataFrame) -> list[str]:
    """Up to three kinds of disclosure that occur, each of another cell, in words without any figure or place."""
    found: list[str] = []
    left = failing.sort_values(["top_share", "cell_id"], ascending=[False, True])
    for gate, words in KINDS_OF_DISCLOSURE:
        rows = left[left["fails"].map(lambda text, gate=gate: gate in text.split(","))]
        if len(rows) and len(found) < 3:
            row = rows.iloc[0]
            found.append(f"{row['attribute']}: {words.format(top=repr(row['top_value']))}")
            left = left[(left["cell_id"] != row["cell_id"]) & (left["top_value"] != row["top_value"])]
    return found


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
