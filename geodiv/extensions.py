"""What makes a GeoPackage readable to people: column descriptions, enumerations, styles, metadata.

The tables of the GeoPackage extensions *schema* and *metadata*, and QGIS's ``layer_styles``; written with SQL
once the layers are in the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from xml.etree import ElementTree as Xml

import geopandas as gpd
import pandas as pd

from . import __version__
from .columns import REMEDIES, REMEDY_ENUMS, Column, Table
from .styles import clean, document, styles

QGIS_URI = "http://mrcc.com/qgis.dtd"
_SCHEMA_URI = "http://www.geopackage.org/spec/#extension_schema"
_METADATA_URI = "http://www.geopackage.org/spec/#extension_metadata"

_CREATE = """
CREATE TABLE gpkg_data_columns (
  table_name TEXT NOT NULL, column_name TEXT NOT NULL, name TEXT, title TEXT, description TEXT,
  mime_type TEXT, constraint_name TEXT,
  CONSTRAINT pk_gdc PRIMARY KEY (table_name, column_name), CONSTRAINT gdc_tn UNIQUE (table_name, name));
CREATE TABLE gpkg_data_column_constraints (
  constraint_name TEXT NOT NULL, constraint_type TEXT NOT NULL, value TEXT, min NUMERIC,
  min_is_inclusive BOOLEAN, max NUMERIC, max_is_inclusive BOOLEAN, description TEXT,
  CONSTRAINT gdcc_ntv UNIQUE (constraint_name, constraint_type, value));
CREATE TABLE gpkg_metadata (
  id INTEGER CONSTRAINT m_pk PRIMARY KEY ASC NOT NULL, md_scope TEXT NOT NULL DEFAULT 'dataset',
  md_standard_uri TEXT NOT NULL, mime_type TEXT NOT NULL DEFAULT 'text/xml',
  metadata TEXT NOT NULL DEFAULT '');
CREATE TABLE gpkg_metadata_reference (
  reference_scope TEXT NOT NULL, table_name TEXT, column_name TEXT, row_id_value INTEGER,
  timestamp DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  md_file_id INTEGER NOT NULL, md_parent_id INTEGER,
  CONSTRAINT crmr_mfi_fk FOREIGN KEY (md_file_id) REFERENCES gpkg_metadata(id),
  CONSTRAINT crmr_mpi_fk FOREIGN KEY (md_parent_id) REFERENCES gpkg_metadata(id));
CREATE TABLE layer_styles (
  id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, f_table_catalog TEXT, f_table_schema TEXT,
  f_table_name TEXT, f_geometry_column TEXT, styleName TEXT, styleQML TEXT, styleSLD TEXT,
  useAsDefault BOOLEAN, description TEXT,
  owner TEXT, ui TEXT, update_time DATETIME);
CREATE TABLE IF NOT EXISTS gpkg_extensions (
  table_name TEXT, column_name TEXT, extension_name TEXT NOT NULL, definition TEXT NOT NULL,
  scope TEXT NOT NULL,
  CONSTRAINT ge_tce UNIQUE (table_name, column_name, extension_name));
"""
_OWN_COLUMNS = (("fid", "Row", "Number of the row in this file"), ("geom", "Outline", "Outline on the map"))


@dataclass(frozen=True, slots=True)
class Dress:
    """What a file says of itself: its kind, the URI and text of its JSON, and the metadata in that."""

    kind: Literal["release", "work"]
    uri: str
    json: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One table of a file, ready to be written: typed rows, located or not, and what it says of itself."""

    frame: pd.DataFrame
    table: Table
    title: str
    abstract: str

    @property
    def located(self) -> bool:
        """Whether it has a geometry."""
        return isinstance(self.frame, gpd.GeoDataFrame)


def describe(database: sqlite3.Connection, layers: Sequence[Layer], dress: Dress, now: str) -> None:
    """Write the extension tables of a file that holds these layers and none of those tables.

    Parameters
    ----------
    database : sqlite3.Connection
        The file, inside a transaction; nothing else may have it open.
    layers : sequence of Layer
        As they were written.
    dress : Dress
    now : str
        ISO 8601 time put into the tables.
    """
    for statement in _CREATE.split(";"):
        database.execute(statement)
    _extensions(database)
    _constraints(database)
    for layer in layers:
        _data_columns(database, layer)
        _styles(database, layer, now)
        _metadata(database, "table", layer.table.name, QGIS_URI, "text/xml", qgis_metadata(layer, dress), now)
    database.execute(
        "INSERT INTO gpkg_contents (table_name, data_type, identifier, description, last_change, srs_id) "
        "VALUES ('layer_styles', 'attributes', 'layer_styles', 'Styles for QGIS', ?, 0)",
        [now],
    )
    _metadata(database, "geopackage", None, dress.uri, "application/json", dress.json, now)


def qgis_metadata(layer: Layer, dress: Dress) -> str:
    """The metadata of a layer as QGIS reads it: title, abstract, keywords, licence, history."""
    metadata = dress.metadata
    root = Xml.Element("qgis", version="3.22.0")
    said = {"identifier": layer.table.name, "parentidentifier": "", "language": "", "type": "dataset"}
    for tag, text in (said | {"title": layer.title, "abstract": layer.abstract}).items():
        Xml.SubElement(root, tag).text = clean(text)
    keywords = Xml.SubElement(root, "keywords", vocabulary="geodiv")
    for word in (*(metadata.get("keywords") or ()), *(("internal",) if dress.kind == "work" else ())):
        Xml.SubElement(keywords, "keyword").text = clean(str(word))
    for line in _history(dress):
        Xml.SubElement(root, "history").text = clean(line)
    if metadata.get("licence") and dress.kind == "release":
        Xml.SubElement(root, "license").text = clean(str(metadata["licence"]))
    return document(root)


def _history(dress: Dress) -> list[str]:
    metadata = dress.metadata
    made = {"release": "Released", "work": "Internal work file made"}[dress.kind]
    lines = [f"{made} by geodiv {__version__}."]
    gates = (metadata.get("policy") or {}).get("gates") or {}
    if gates:
        lines.append(f"Gates: {', '.join(f'{name} = {value}' for name, value in gates.items())}.")
    if metadata.get("rounds") is not None:
        lines.append(f"Rounds of remedies: {metadata['rounds']}.")
    if metadata.get("count_basis"):
        lines.append(f"Counted: {metadata['count_basis']}.")
    if metadata.get("note"):
        lines.append(str(metadata["note"]))
    return lines


def _extensions(database: sqlite3.Connection) -> None:
    rows = [
        ("gpkg_data_columns", "gpkg_schema", _SCHEMA_URI),
        ("gpkg_data_column_constraints", "gpkg_schema", _SCHEMA_URI),
        ("gpkg_metadata", "gpkg_metadata", _METADATA_URI),
        ("gpkg_metadata_reference", "gpkg_metadata", _METADATA_URI),
    ]
    database.executemany("INSERT INTO gpkg_extensions VALUES (?, NULL, ?, ?, 'read-write')", rows)


def _constraints(database: sqlite3.Connection) -> None:
    rows = [(name, word, REMEDIES[word]) for name, words in REMEDY_ENUMS.items() for word in words]
    database.executemany(
        "INSERT INTO gpkg_data_column_constraints (constraint_name, constraint_type, value, description) "
        "VALUES (?, 'enum', ?, ?)",
        rows,
    )


def _data_columns(database: sqlite3.Connection, layer: Layer) -> None:
    own = _OWN_COLUMNS if layer.located else _OWN_COLUMNS[:1]
    columns = [*(Column(name, "text", title, text) for name, title, text in own), *layer.table.columns]
    rows = [(layer.table.name, c.name, c.name, c.title, c.description, c.enum) for c in columns]
    database.executemany("INSERT INTO gpkg_data_columns VALUES (?, ?, ?, ?, ?, NULL, ?)", rows)


def _styles(database: sqlite3.Connection, layer: Layer, now: str) -> None:
    # QGIS compares catalog and schema with '', not NULL, and the geometry column with the real one
    geometry = "geom" if layer.located else ""
    rows = [
        (layer.table.name, geometry, s.name, s.qml, s.default, s.description, now)
        for s in styles(layer.table, layer.frame, layer.located)
    ]
    database.executemany(
        "INSERT INTO layer_styles (f_table_catalog, f_table_schema, f_table_name, f_geometry_column, "
        "styleName, styleQML, styleSLD, useAsDefault, description, owner, ui, update_time) "
        "VALUES ('', '', ?, ?, ?, ?, '', ?, ?, '', NULL, ?)",
        rows,
    )


def _metadata(
    database: sqlite3.Connection, scope: str, table: str | None, uri: str, mime: str, text: str, now: str
) -> None:
    row = database.execute(
        "INSERT INTO gpkg_metadata (md_scope, md_standard_uri, mime_type, metadata) "
        "VALUES ('dataset', ?, ?, ?)",
        [uri, mime, text],
    ).lastrowid
    database.execute(
        "INSERT INTO gpkg_metadata_reference (reference_scope, table_name, timestamp, md_file_id) "
        "VALUES (?, ?, ?, ?)",
        [scope, table, now, row],
    )
