"""geodiv: does a map of people's visits give away what people did in a cell? Check it, and repair the cells that do.

The names below are the public interface; each is loaded when it is first used, so importing geodiv costs nothing.
``geodiv.audits`` holds the audits: attack, recount, truth, readers, sweeps and what else is measured from outside.
"""

# The floors of the house. Imports go down, or up the list inside a floor:
#   1 what we talk about    arrays text errors interrupts leftovers taxonomy ground labels attribute places policy
#                           publication plan
#   2 pure knowledge        measures grids sketch
#   3 counting people       sources intake engines tabulation
#   4 judging               inventory reference verdicts scores districts counsel
#   5 acting                remedies subtraction course ending records release verify enforcement place_findings
#                           taxonomies textbook audits
#   6 leaving the building  columns atomic targets metadata sidecar styles extensions shares geopackage partial
#                           geoparquet spreadsheet onelayer formats work workfile policy_file reference_files
#                           place_files run demo recognise cellsize suggest summary wording info page vendor outlines
#                           mapviews webmap drawing pictures sweep_plots mix_plots plots
#                           notebook findings figures reportgates reportscores reportaudits report progress
#                           flags sweep_files cli_audits taxonomy_plot cli_taxonomy cli_maps cli

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Taxonomy": "taxonomy",
    "Nominal": "attribute",
    "Ordinal": "attribute",
    "Numeric": "attribute",
    "Policy": "policy",
    "Global": "policy",
    "Ring": "policy",
    "Region": "policy",
    "Weights": "policy",
    "Places": "places",
    "read_places": "place_files",
    "place_report": "place_findings",
    "Wishes": "taxonomies.wishes",
    "diff_taxonomies": "taxonomies.diff",
    "suggest_taxonomy": "taxonomies.suggest",
    "check_taxonomy": "taxonomies.check",
    "Publication": "publication",
    "Plan": "plan",
    "H3Grid": "grids.h3",
    "SquareGrid": "grids.square",
    "ZoneGrid": "grids.zones",
    "ColumnGrid": "grids.column",
    "Tabulation": "tabulation",
    "tabulate": "tabulation",
    "DuckDBEngine": "engines.duckdb",
    "SparkEngine": "engines.spark",
    "score": "scores",
    "advice": "counsel",
    "failing_districts": "districts",
    "Release": "release",
    "Outcome": "enforcement",
    "enforce": "enforcement",
    "read_release": "formats",
    "Run": "run",
    "read_run": "run",
    "cell_attribute_table": "textbook",
    "entropy_diversity": "textbook",
    "closeness": "textbook",
    "posterior_shift": "textbook",
    "remedy": "textbook",
    "enforce_l_diversity": "textbook",
    "GeodivError": "errors",
    "UsageError": "errors",
    "SourceError": "errors",
    "TaxonomyError": "errors",
    "PolicyError": "errors",
    "GridError": "errors",
    "UnknownValueError": "errors",
    "WriteError": "errors",
    "VerificationError": "errors",
    "NotConverged": "errors",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name == "audits":
        return importlib.import_module(".audits", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'geodiv' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:
    from . import audits as audits
    from .attribute import Nominal as Nominal
    from .attribute import Numeric as Numeric
    from .attribute import Ordinal as Ordinal
    from .counsel import advice as advice
    from .districts import failing_districts as failing_districts
    from .enforcement import Outcome as Outcome
    from .enforcement import enforce as enforce
    from .engines.duckdb import DuckDBEngine as DuckDBEngine
    from .engines.spark import SparkEngine as SparkEngine
    from .errors import GeodivError as GeodivError
    from .errors import GridError as GridError
    from .errors import NotConverged as NotConverged
    from .errors import PolicyError as PolicyError
    from .errors import SourceError as SourceError
    from .errors import TaxonomyError as TaxonomyError
    from .errors import UnknownValueError as UnknownValueError
    from .errors import UsageError as UsageError
    from .errors import VerificationError as VerificationError
    from .errors import WriteError as WriteError
    from .formats import read_release as read_release
    from .grids.column import ColumnGrid as ColumnGrid
    from .grids.h3 import H3Grid as H3Grid
    from .grids.square import SquareGrid as SquareGrid
    from .grids.zones import ZoneGrid as ZoneGrid
    from .place_files import read_places as read_places
    from .place_findings import place_report as place_report
    from .places import Places as Places
    from .plan import Plan as Plan
    from .policy import Global as Global
    from .policy import Policy as Policy
    from .policy import Region as Region
    from .policy import Ring as Ring
    from .policy import Weights as Weights
    from .publication import Publication as Publication
    from .release import Release as Release
    from .run import Run as Run
    from .run import read_run as read_run
    from .scores import score as score
    from .tabulation import Tabulation as Tabulation
    from .tabulation import tabulate as tabulate
    from .taxonomies.check import check_taxonomy as check_taxonomy
    from .taxonomies.diff import diff_taxonomies as diff_taxonomies
    from .taxonomies.suggest import suggest_taxonomy as suggest_taxonomy
    from .taxonomies.wishes import Wishes as Wishes
    from .taxonomy import Taxonomy as Taxonomy
    from .textbook import cell_attribute_table as cell_attribute_table
    from .textbook import closeness as closeness
    from .textbook import enforce_l_diversity as enforce_l_diversity
    from .textbook import entropy_diversity as entropy_diversity
    from .textbook import posterior_shift as posterior_shift
    from .textbook import remedy as remedy
