"""What the real QGIS sees in a file; run by QGIS's own Python, prints JSON: FILE FOLDER LAYER [LAYER ...]."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

from qgis.core import (
    QgsApplication,
    QgsMapRendererSequentialJob,
    QgsMapSettings,
    QgsVectorLayer,
)
from qgis.PyQt.QtCore import QSize
from qgis.PyQt.QtGui import QColor


def look(layer: QgsVectorLayer) -> dict:
    """Renderer, styles, aliases, value maps and metadata of a layer, as plain values."""
    metadata, renderer, fields = layer.metadata(), layer.renderer(), layer.fields()
    own, _, names, _, _ = layer.listStylesInDatabase()
    setups = {f.name(): layer.editorWidgetSetup(i) for i, f in enumerate(fields)}
    return {
        "valid": layer.isValid(),
        "rows": layer.featureCount(),
        "crs": layer.crs().authid(),
        "renderer": renderer.type() if renderer else None,
        "categories": categories(renderer),
        "styles": names[:own],
        "aliases": {f.name(): f.alias() for f in fields},
        "types": {f.name(): f.typeName() for f in fields},
        "values": {name: s.config()["map"] for name, s in setups.items() if s.type() == "ValueMap"},
        "title": metadata.title(),
        "abstract": metadata.abstract(),
        "keywords": metadata.keywords(),
        "licences": metadata.licenses(),
        "history": metadata.history(),
    }


def categories(renderer: object) -> list:
    """[value, label, colour, number of symbol layers] of each category, or [label, filter] of each rule."""
    if renderer is None:
        return []
    if renderer.type() == "categorizedSymbol":
        found = renderer.categories()  # a symbol lives no longer than its category
        return [
            [c.value(), c.label(), c.symbol().color().name().upper(), c.symbol().symbolLayerCount()]
            for c in found
        ]
    if renderer.type() == "RuleRenderer":
        return [[rule.label(), rule.filterExpression()] for rule in renderer.rootRule().children()]
    return []


def picture(layer: QgsVectorLayer, path: Path) -> dict:
    """Draw the layer into a PNG; the ten commonest colours and their pixels."""
    settings = QgsMapSettings()
    settings.setLayers([layer])
    extent = layer.extent()
    extent.scale(1.05)
    settings.setExtent(extent)
    settings.setDestinationCrs(layer.crs())
    settings.setOutputSize(QSize(600, 400))
    settings.setBackgroundColor(QColor("white"))
    settings.setFlag(QgsMapSettings.Antialiasing, False)
    job = QgsMapRendererSequentialJob(settings)
    job.start()
    job.waitForFinished()
    image = job.renderedImage()
    image.save(str(path))
    pixels = Counter(image.pixelColor(x, y).name().upper() for x in range(600) for y in range(400))
    return dict(pixels.most_common(10))


def main(file: str, folder: str, names: list[str]) -> dict:
    """Everything about a file and these layers of it, each in each of its styles."""
    root = QgsVectorLayer(file, "root", "ogr")
    parts = [sub.split("!!::!!") for sub in root.dataProvider().subLayers()]
    result = {"sublayers": {part[1]: part[3] for part in parts}, "layers": {}}
    for name in names:
        layer = QgsVectorLayer(f"{file}|layername={name}", name, "ogr")
        seen = look(layer)
        if layer.isSpatial() and layer.featureCount():
            own, ids, styles, _, _ = layer.listStylesInDatabase()
            seen["pixels"] = picture(layer, Path(folder) / f"{name}.png")
            seen["by style"] = {}
            for identifier, style in zip(ids[:own], styles[:own], strict=True):
                qml = layer.getStyleFromDatabase(identifier)[0]
                seen["by style"][style] = restyled(
                    file, name, qml, Path(folder) / f"{name} {len(seen['by style'])}.png"
                )
        result["layers"][name] = seen
    return result


def restyled(file: str, name: str, qml: str, path: Path) -> dict:
    """Pixels and categories of the layer under another style."""
    from qgis.PyQt.QtXml import QDomDocument

    layer = QgsVectorLayer(f"{file}|layername={name}", name, "ogr")
    document = QDomDocument()
    document.setContent(qml)
    done, message = layer.importNamedStyle(document)
    seen = {"read": done, "message": message, "renderer": layer.renderer().type()}
    return seen | {"categories": categories(layer.renderer()), "pixels": picture(layer, path)}


if __name__ == "__main__":
    application = QgsApplication([], False)
    application.initQgis()
    sys.stdout.write(json.dumps(main(sys.argv[1], sys.argv[2], sys.argv[3:])) + "\n")
    sys.stdout.flush()
    os._exit(0)  # QGIS 3.22 crashes when Python tidies up its layers
