"""Suppress: do not publish a zone."""

from __future__ import annotations

from .situation import Situation


def suppress(situation: Situation) -> Situation:
    """Failing zones that nothing before cleared are not published; those that wait for a partner are left."""
    lost = situation.failing & ~situation.waiting
    return situation.with_plan(situation.plan.suppress(situation.zones[lost]))
