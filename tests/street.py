"""A street of clinics, salons and law offices, and two ways to join what is done there."""

from __future__ import annotations

from typing import Any

from crowds import ROW, tabulate

import geodiv as gd

CLUSTER, STREET, CORNER = sorted(ROW[:3])
"""Where the clinic, the pharmacy and the dentist are; where the salons and law offices are; cafes and shops."""
VISITS = {
    CLUSTER: {"clinic": 24, "pharmacy": 3, "dentist": 3, "cafe": 5, "shop": 5},
    STREET: {"salon": 12, "law office": 12, "cafe": 8, "shop": 8},
    CORNER: {"salon": 10, "law office": 10, "cafe": 10, "shop": 10},
}
HEALTH = gd.Taxonomy.of(
    {"clinic": "health", "pharmacy": "health", "dentist": "health", "salon": "beauty", "law office": "law"}
    | {"cafe": "food", "shop": "retail"},
    name="health",
)
APPOINTMENT = gd.Taxonomy.of(
    {"clinic": "appointment", "dentist": "appointment", "salon": "appointment", "law office": "appointment"}
    | {"pharmacy": "counter", "cafe": "food", "shop": "retail"},
    name="appointment",
)
POLICY: dict[str, Any] = {"k_min": 10, "l_min": 4, "residual": False, "ladder": ("recode", "suppress")}
CLINIC_ONLY = gd.Places(
    "activity",
    {CLUSTER: {"clinic": 1, "pharmacy": 1, "cafe": 2}, STREET: {"salon": 1, "law office": 1, "clinic": 1}},
)
MIXED = gd.Places("activity", {CLUSTER: {"clinic": 1, "salon": 1, "law office": 1, "pharmacy": 1}})


def street(taxonomy: gd.Taxonomy | None, **keywords: Any) -> gd.Tabulation:
    """The visits under a taxonomy."""
    return tabulate(VISITS, gd.Nominal("activity", taxonomy=taxonomy, **keywords))
