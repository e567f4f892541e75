"""Intake: any source of visits as batches of (person, place, values), and a tally of the rows not counted.

A visit without a person, or without a usable place, is never counted and never silent. A missing value of an
attribute is no such fault: it is the value ``(missing)``.
"""

# The order inside, imports go to the left: textcolumn coordinates spec tally faults places table reading

from __future__ import annotations

from .reading import batches, whole
from .spec import VisitSpec, declared
from .table import VisitBatch
from .tally import REASONS, Intake, check

__all__ = ["REASONS", "Intake", "VisitBatch", "VisitSpec", "batches", "check", "declared", "whole"]
