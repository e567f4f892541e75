"""Audits: what a release gives away, measured from outside.

`attack` reads the published file alone; `recount` decides everything from the visits, and `truth` tells how
often a reader guesses right; `ruling_out`, `minimality` and `members` are readers who know more; `recheck`
compares persons with rows, `cross_attribute` one attribute with another, `difference` two releases;
`sweep_sizes` and `sweep_thresholds` show what other choices would have given. ``docs/audits.md`` says what
each can and cannot show.
"""

# The order inside, imports go up the list: tables bounds published surroundings judging faults decisions guess attack
# facts mixes mismatches recount truth readers recheck cross_attribute differencing points sweep

from __future__ import annotations

from .attack import Attack, attack
from .cross_attribute import Crossed, cross_attribute
from .differencing import Difference, difference
from .facts import Facts
from .readers import members, minimality, ruling_out
from .recheck import recheck
from .recount import Recount, recount
from .sweep import sweep_sizes, sweep_thresholds
from .truth import Truth, truth

__all__ = [
    "Attack",
    "Crossed",
    "Difference",
    "Facts",
    "Recount",
    "Truth",
    "attack",
    "cross_attribute",
    "difference",
    "members",
    "minimality",
    "recheck",
    "recount",
    "ruling_out",
    "sweep_sizes",
    "sweep_thresholds",
    "truth",
]
