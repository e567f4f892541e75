"""Advice: what in a policy is likely to go wrong on these visits, in words."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .attribute import Nominal
from .policy import Gates, Policy
from .scores import Judge
from .tabulation import Tabulation


def advice(table: Tabulation, policy: Policy, scores: pd.DataFrame) -> tuple[str, ...]:
    """What a careful colleague would say of this policy on these visits; empty when nothing comes to mind.

    Parameters
    ----------
    table : Tabulation
    policy : Policy
    scores : DataFrame
        As `geodiv.score` gives them.

    Returns
    -------
    tuple of str
        No gate but k_min; k_min below 10; t_max below the noise floor of most cells; an ordered attribute with t_max
        and no shift_max; a taxonomy level that clears no cell. No cell, value or count is named.

    Examples
    --------
    >>> import geodiv as gd
    >>> run = gd.read_run("fixtures/policy.toml")
    >>> table = run.tabulate("fixtures/visits.parquet")
    >>> from dataclasses import replace
    >>> careless = replace(run.policy, k_min=4)
    >>> [text.partition(":")[0] for text in gd.advice(table, careless, gd.score(table, careless))][:1]
    ['k_min = 4']
    """
    return (
        *_no_gate(table, policy),
        *_few_persons(policy),
        *_noise(table, policy, scores),
        *_ordered(table, policy),
        *_idle_levels(table, policy),
    )


def _no_gate(table: Tabulation, policy: Policy) -> list[str]:
    persons_only = Gates(k_min=policy.k_min)
    return [
        f"no gate looks at '{attribute.column}': k_min counts a crowd and says nothing of what it did. "
        "Set l_min, t_max, shift_max or incidence_max."
        for attribute in table.attributes
        if policy.thresholds(attribute) == persons_only
    ]


def _few_persons(policy: Policy) -> list[str]:
    if policy.k_min >= 10:
        return []
    return [
        f"k_min = {policy.k_min}: below about ten persons diversity means nothing (four persons with four values "
        "score 4.0). Use k_min = 10 or more."
    ]


def _noise(table: Tabulation, policy: Policy, scores: pd.DataFrame) -> list[str]:
    out = []
    for attribute in table.attributes:
        t_max = policy.thresholds(attribute).t_max
        rows = scores[(scores["attribute"] == attribute.column) & (scores["persons"] >= policy.k_min)]
        floor = rows["noise_floor"].dropna()
        if t_max is not None and len(floor) > 1 and (floor > t_max).mean() > 0.5:
            out.append(
                f"t_max = {t_max:g} for '{attribute.column}' lies below the noise floor of most cells (median "
                f"{floor.median():.2f}): chance alone fails them. Raise k_min, use larger cells, or raise t_max."
            )
    return out


def _ordered(table: Tabulation, policy: Policy) -> list[str]:
    out = []
    for attribute in table.attributes:
        gates = policy.thresholds(attribute)
        if not isinstance(attribute, Nominal) and gates.t_max is not None and gates.shift_max is None:
            out.append(
                f"'{attribute.column}' is ordered and has t_max without shift_max: an ordered distance does not bound "
                "how far the belief in one value moves. Set shift_max too."
            )
    return out


def _idle_levels(table: Tabulation, policy: Policy) -> list[str]:
    judge = Judge.of(table, policy)
    passes = judge.standing(table.base).passes
    out = []
    for attribute, space, held, start in zip(
        table.attributes, table.spaces, passes, judge.start, strict=True
    ):
        failing = judge.references.eligible & ~held[:, start]
        for level in range(start + 1, len(space.levels)):
            if "recode" not in policy.ladder or not failing.any():
                continue
            if not space.publishable[level]:
                out.append(
                    f"level{level} of the taxonomy of '{attribute.column}' has a single label: it is never published, "
                    "since it would say nothing."
                )
            elif not np.any(held[failing, level]):
                out.append(
                    f"level{level} of the taxonomy of '{attribute.column}' clears no cell: what fails, fails there as "
                    "well. Join values that share streets, not what clusters."
                )
    return out
