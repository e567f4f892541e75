"""The report that a reviewer signs: one HTML file that needs no network and prints well, and its JSON twin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .figures import Figure, drawable, release_figures, work_figures
from .findings import internal_findings, public_findings
from .notebook import release_sketch
from .page import Markup, Page, asset, table, text
from .reportaudits import audit_section
from .reportgates import noise_section, thresholds_section
from .reportscores import before_section, final_section, rounds_section, work_list_section
from .sidecar import to_json
from .styles import COLOURS

if TYPE_CHECKING:
    from .release import Release
    from .workfile import Work

Section = tuple[str, str, str]
"""Anchor, heading and HTML of a part of the report."""
REMEDY_WORDS = {
    "publish": "zones published as they are, at their finest categories",
    "publish_coarsened": "zones published with coarser categories: the place stays, detail of what was done goes",
    "publish_merged": "zones joined from neighbouring cells and counted again",
}


def twin(path: str | Path) -> Path:
    """The JSON that belongs to a report: its whole name and .json, so that it is never a release's own."""
    return Path(f"{path}.json")


def write_report(subject: Release | Work, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the report of a release (public) or of a work file (internal) as HTML, and its JSON twin beside it.

    Parameters
    ----------
    subject : Release or Work
    path : path
        The twin gets the same name with .json after it.
    overwrite : bool, default False

    Raises
    ------
    UsageError
        A file exists and `overwrite` is false, or the name is none of a page.
    WriteError
        It cannot be written; what stood there before still stands.
    """
    found, figures = findings_of(subject)
    report_page(found, figures).write(path, overwrite=overwrite, beside={twin(path): to_json(found)})


def findings_of(subject: Release | Work) -> tuple[dict[str, Any], list[Figure]]:
    """What the report says, as plain values, and its figures: public of a Release, internal of a Work."""
    from .release import Release

    if isinstance(subject, Release):
        found, figures = public_findings(subject), release_figures(subject)
        if not figures and (drawn := release_sketch(subject, 420)):
            figures = [Figure("released", "Published zones by remedy.", Markup(drawn))]
        return found, figures
    found = internal_findings(subject)
    limits = {row["attribute"]: row["threshold"] for row in found["thresholds"] if row["gate"] == "l_min"}
    return found, work_figures(subject, limits)


def report_page(found: Mapping[str, Any], figures: Sequence[Figure] = ()) -> Page:
    """The page of a report.

    Parameters
    ----------
    found : mapping
        As `public_findings` or `internal_findings` give it.
    figures : sequence of Figure
    """
    internal = found["variant"] == "internal"
    title = ("INTERNAL " if internal else "") + f"Report: {found['title'] or 'geodiv release'}"
    sections = [
        (anchor, heading, body + "".join(_figure(f) for f in figures if f.section == anchor))
        for anchor, heading, body in _sections(found)
        if body
    ]
    contents = "".join(f'<li><a href="#{anchor}">{text(heading)}</a></li>' for anchor, heading, _ in sections)
    parts = "".join(f'<section id="{a}"><h2>{text(h)}</h2>{body}</section>' for a, h, body in sections)
    missing = (
        ""
        if drawable()
        else "<p>Plots are left out: matplotlib is not installed (pip install 'geodiv[map]').</p>"
    )
    body = (
        f'<table role="presentation" class="sheet {found["variant"]}"><thead><tr><td><div class="notice" '
        f'role="note">'
        f"{text(found['notice'])}</div></td></tr></thead><tbody><tr><td><main>"
        f"<h1>{text(title)}</h1>{_head(found)}<nav "
        f'aria-label="Contents"><ul>{contents}</ul></nav>{missing}{parts}{SIGN}'
        "</main></td></tr></tbody></table>"
    )
    return Page(title=title, body=body, styles=[asset("report.css")], images=["data:"])


SIGN = '<div class="sign"><div>Reviewed by, place and date</div><div>Released by, place and date</div></div>'


def _sections(found: Mapping[str, Any]) -> Iterator[Section]:
    internal = found["variant"] == "internal"
    yield "released", "What was released", _released(found)
    yield "thresholds", "Thresholds, and what they are measured against", thresholds_section(found)
    if internal:
        yield "before", "Before the remedies", before_section(found)
    yield "noise", "Noise floor", noise_section(found)
    yield "remedies", "Remedies and rounds", _remedies(found)
    if internal:
        yield "final", "The published zones, true figures", final_section(found)
        yield "rounds", "Rounds", rounds_section(found)
        yield "worklist", "Work list", work_list_section(found)
    yield "intake", "Intake", _intake(found)
    yield "taxonomy", "Taxonomies", _taxonomies(found)
    yield "audits", "Audits", audit_section(found)
    yield "promises", "What is promised and what is not", PROMISES
    yield "provenance", "How it was made", _provenance(found)


PROMISES = (
    "<p>Every published zone passes every gate above, counted again from distinct persons after the last "
    "remedy. What is "
    "not published is in no table, with no count and no name; its cells are told as one number.</p>"
    "<p>Not promised: no differential privacy; nothing against membership inference, against subtracting "
    "two releases "
    "from each other (geodiv audit --against reports what that tells), or against a reader who knows "
    "which cell of a merged "
    "zone somebody was in; no anonymity of trajectories. That a zone was coarsened or merged tells that "
    "its finest figures "
    "did not pass.</p>"
)


def _head(found: Mapping[str, Any]) -> str:
    lines = [f"<p>{text(found['abstract'])}</p>" if found.get("abstract") else ""]
    rows = [
        ("Licence", found.get("licence")),
        ("Keywords", ", ".join(found.get("keywords") or [])),
        ("Note", found.get("note")),
    ]
    lines += [f"<p><b>{name}.</b> {text(value)}</p>" for name, value in rows if value]
    return "".join(lines)


def _released(found: Mapping[str, Any]) -> str:
    released = found["released"]
    if released is None:
        return "<p>Nothing: this is a file of scores alone, before any remedy.</p>"
    tiles = [
        (f"{released['zones']:,}", "published zones"),
        (f"{released['cells']:,}", "cells in them"),
        (f"{released['persons']:,}", "distinct persons"),
        (f"{released['coverage']:.2f}", "coverage"),
        (f"{released['not_published']:,}", "cells not published"),
    ]
    big = "".join(f"<li><b>{text(figure)}</b>{text(words)}</li>" for figure, words in tiles)
    grid = ", ".join(f"{k} {v}" for k, v in (found["grid"] or {}).items() if v not in (None, [], ""))
    lines = [
        f'<ul class="big">{big}</ul>',
        "<p>Persons are distinct persons, never rows. Coverage is the share of (person, cell) pairs in "
        "published zones among "
        "those of all cells with at least k_min persons, to two decimals. Cells that are not published "
        "are those below k_min, "
        "suppressed ones and the residual together.</p>",
        f"<p>Grid: {text(grid)}.</p>",
    ]
    if found.get("count_min"):
        lines.append(
            f"<p>Label counts below {found['count_min']} are hidden, and one more beside them; then all "
            f"shares of that zone and "
            "attribute are hidden too. This is a view of the release, not a remedy.</p>"
        )
    for row in released.get("levels", []):
        tally = ", ".join(f"{n:,} at level {level}" for level, n in row["zones_by_level"].items())
        hidden = row["zones_with_hidden_counts"]
        lines.append(
            f"<p><b>{text(row['attribute'])}</b>: {tally} (0 is the finest); {hidden:,} zones hide some "
            f"count.</p>"
        )
    return "".join(lines)


def _remedies(found: Mapping[str, Any]) -> str:
    released = found["released"]
    if released is None:
        return ""
    rows = [
        (Markup(f"{_swatch(COLOURS[w])} {text(REMEDY_WORDS[w])}"), f"{released['remedies'].get(w, 0):,}")
        for w in REMEDY_WORDS
    ]
    policy = found.get("policy") or {}
    ladder = ", then ".join(policy.get("ladder", [])) or "none"
    scope = (
        "each failing zone by itself"
        if policy.get("recode_scope") == "zone"
        else "one level for the whole release"
    )
    return (
        table(["Remedy", "Zones"], rows, numbers=1)
        + f"<p>Ladder: {text(ladder)}; coarser categories for {scope}; at most "
        f"{policy.get('max_members', '–')} cells in a zone; what "
        f"is not published {'must be' if policy.get('residual') else 'need not be'} safe as a group. "
        f"Rounds: {released['rounds']}. "
        "After every remedy, what changed was counted again from distinct persons.</p>"
    )


def _intake(found: Mapping[str, Any]) -> str:
    intake = found["intake"]
    rows: Iterable[tuple[str, int]] = intake.get("rows", {}).items() or intake["dropped"].items()
    if not (rows := list(rows)):
        return "<p>Every row was counted.</p>"
    name = "Rows" if intake.get("rows") else "Rows not counted, by reason"
    return table([name, "Number"], [(reason, f"{n:,}") for reason, n in rows], numbers=1)


def _taxonomies(found: Mapping[str, Any]) -> str:
    rows = []
    for record in found["attributes"] or []:
        taxonomy = record.get("taxonomy") or {}
        levels = " → ".join(str(len(labels)) for labels in record["levels"])
        rows.append(
            (
                record["column"],
                record["kind"],
                taxonomy.get("name"),
                taxonomy.get("version"),
                levels,
                Markup(f"<code>{text(taxonomy.get('digest') or '–')}</code>"),
            )
        )
    if not rows:
        return "<p>The file does not name them.</p>"
    head = ["Attribute", "Kind", "Taxonomy", "Version", "Labels, by level", "Digest (sha256 of its rows)"]
    note = "<p>Releases under different taxonomies cannot be compared.</p>"
    return f'<div class="scroll">{table(head, rows)}</div>{note}'


def _provenance(found: Mapping[str, Any]) -> str:
    versions = found.get("versions") or {}
    rows = [
        ("Digest of the input (sha256)", found.get("input_digest")),
        ("Engine", ", ".join(f"{k} {v}" for k, v in (found.get("engine") or {}).items()) or None),
        ("Versions", ", ".join(f"{k} {v}" for k, v in versions.items()) or None),
        ("Report by", f"geodiv {found['geodiv']}"),
    ]
    notes = "".join(
        f"<p>Not carried by the file: {text(note)}.</p>" for note in found.get("not_carried") or []
    )
    run = f"<h3>The run, as it was written</h3><pre>{text(found['run'])}</pre>" if found.get("run") else ""
    return table(["What", ""], rows) + notes + run


def _figure(figure: Figure) -> str:
    return f"<figure>{figure.html}<figcaption>{text(figure.caption)}</figcaption></figure>"


def _swatch(colour: str) -> str:
    return (
        f'<svg width="12" height="12" aria-hidden="true"><rect width="12" height="12" fill="{colour}"/></svg>'
    )
