"""Thresholds in words, with the reference beside every t: a t without its reference says nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

GATES = {
    "k_min": ("at least {} persons", "persons in a zone"),
    "l_min": (
        "an effective count of at least {}",
        "effective number of values that a reader must still consider",
    ),
    "c_l": ("recursive l of {}", "l of recursive (c, l)-diversity"),
    "c_max": ("recursive c below {}", "c of recursive (c, l)-diversity"),
    "t_max": ("a distance of at most {} to {reference}", "distance of a zone's mix to its reference"),
    "shift_max": (
        "no value's belief moved by more than {} from {reference}",
        "change of a reader's belief in one value",
    ),
    "lift_max": (
        "no value more than {} times as likely as in {reference}",
        "ratio of a reader's belief to the prior",
    ),
    "share_max": ("no value believed with more than {}", "belief in one value"),
    "incidence_max": (
        "no label held by more than {} of the persons",
        "largest share of persons with one label",
    ),
    "label_min": ("at least {} persons under each published label", "persons under a published label"),
    "tier_max": (
        "no more than {} believed of the sensitive values together",
        "belief in the sensitive values together",
    ),
    "tier_incidence_max": (
        "no more than {} of the persons with any sensitive value",
        "share of persons with any sensitive value",
    ),
}
"""What each gate asks: in a sentence, and as a line of a table."""


AGAINST_REFERENCE = ("t_max", "shift_max", "lift_max")
"""Gates that mean nothing without the reference they are taken against."""


def number(value: Any) -> str:
    """A threshold or figure, at most four digits behind the point."""
    if isinstance(value, float):
        return f"{value:,.4f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value)


def scope_words(scope: str) -> str:
    """A reference scope as it stands beside a zone, in words."""
    if scope.startswith("ring:"):
        order = scope.removeprefix("ring:")
        return f"the ring of order {order} around it"
    words = {
        "global": "the mix of the whole area",
        "region": "the mix of its region",
        "weights": "the weighted mix of its neighbours",
        "none": "no reference (the gate then fails)",
    }
    return words.get(scope, scope)


def reference_words(policy: Mapping[str, Any] | None) -> str:
    """The reference of a policy in words: what every t is measured against.

    Parameters
    ----------
    policy : mapping
        As it stands in the metadata of a release.

    Examples
    --------
    >>> ring = {"scope": "ring", "order": 1, "max_order": 3, "min_persons": 30, "fallback": "global"}
    >>> reference_words({"reference": ring})
    'the ring of order 1 around it (up to order 3 for 30 persons, else the mix of the whole area)'
    """
    record = (policy or {}).get("reference")
    if not record:
        return "a reference that this file does not name"
    scope, order = record.get("scope", "global"), record.get("order")
    words = scope_words(f"ring:{order}" if scope == "ring" else scope)
    more = []
    if scope == "ring" and record.get("max_order") not in (None, order):
        more.append(f"up to order {record['max_order']}")
    if record.get("min_persons", 1) > 1:
        more.append(f"for {record['min_persons']} persons")
    inner = " ".join(more)
    if record.get("fallback"):
        inner = ", else ".join(filter(None, [inner, scope_words(record["fallback"])]))
    return f"{words} ({inner})" if inner else words


def judged_by(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(what, sentence) for each attribute: the gates that its zones pass, the reference beside t."""
    policy = metadata.get("policy")
    reference = reference_words(policy)
    for record in metadata.get("attributes", []):
        gates = [
            GATES[name][0].format(number(value), reference=reference)
            for name, value in record.get("gates", {}).items()
            if name in GATES
        ]
        yield f"Every zone passes, for {record['column']}:", "; ".join(gates) + "."
