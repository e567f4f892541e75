"""The Spark engine: contributions on a cluster, counted by SQL; the same tables as those of the memory engine.

Only DataFrames, SQL and ``mapInArrow``, so that one class serves a local Spark, a standalone cluster, Spark Connect
and what else speaks its protocol. Places and texts are the work of the intake's own function on the workers.
"""

# The order inside, imports go to the left: failures jobs session shipping workers arrow held reading probe engine

from __future__ import annotations

from .engine import SparkEngine

__all__ = ["SparkEngine"]
