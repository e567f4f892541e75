"""Draws before_after.png with QGIS: a work file as it was, and what became of it.

geodiv demo -o demo
QT_QPA_PLATFORM=offscreen /usr/bin/python3 docs/pictures/before_after.py demo/work.gpkg docs/pictures/before_after.png
"""

from __future__ import annotations

import os
import sys

from qgis.core import (
    QgsApplication,
    QgsCoordinateReferenceSystem,
    QgsCoordinateTransform,
    QgsMapRendererSequentialJob,
    QgsMapSettings,
    QgsProject,
    QgsRectangle,
    QgsVectorLayer,
)
from qgis.PyQt.QtCore import QRect, QSize, Qt
from qgis.PyQt.QtGui import QColor, QFont, QImage, QPainter
from qgis.PyQt.QtXml import QDomDocument

WIDTH, HEIGHT, TOP, BOTTOM = 400, 330, 34, 78
CRS = "EPSG:32631"
PANELS = (("before: what each hexagon needs", "by remedy"), ("after: what is published", "by final remedy"))


def styled(file: str, style: str) -> QgsVectorLayer:
    """The cells of a work file in one of the styles that it holds."""
    layer = QgsVectorLayer(f"{file}|layername=cells", "cells", "ogr")
    own, ids, names, _, _ = layer.listStylesInDatabase()
    document = QDomDocument()
    document.setContent(layer.getStyleFromDatabase(ids[names[:own].index(style)])[0])
    layer.importNamedStyle(document)
    return layer


def drawn(layer: QgsVectorLayer, extent: QgsRectangle) -> QImage:
    """The map of one layer."""
    settings = QgsMapSettings()
    settings.setLayers([layer])
    settings.setExtent(extent)
    settings.setDestinationCrs(QgsCoordinateReferenceSystem(CRS))
    settings.setOutputSize(QSize(WIDTH, HEIGHT))
    settings.setBackgroundColor(QColor("white"))
    job = QgsMapRendererSequentialJob(settings)
    job.start()
    job.waitForFinished()
    return job.renderedImage()


def main(file: str, target: str) -> None:
    """Draw both panels, their titles and their legends."""
    image = QImage(2 * WIDTH, TOP + HEIGHT + BOTTOM, QImage.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.Antialiasing)
    for number, (title, style) in enumerate(PANELS):
        layer, left = styled(file, style), number * WIDTH
        move = QgsCoordinateTransform(layer.crs(), QgsCoordinateReferenceSystem(CRS), QgsProject.instance())
        extent = move.transformBoundingBox(layer.extent())
        extent.setXMaximum(extent.xMinimum() + 0.66 * extent.width())  # the town, without the pier far out
        extent.scale(1.08)
        painter.drawImage(left, TOP, drawn(layer, extent))
        painter.setFont(QFont("DejaVu Sans", 11, QFont.Bold))
        painter.drawText(QRect(left, 0, WIDTH, TOP), int(Qt.AlignCenter), title)
        painter.setFont(QFont("DejaVu Sans", 9))
        for row, category in enumerate(layer.renderer().categories()):
            symbol = category.symbol().clone()
            y = TOP + HEIGHT + 18 * row
            painter.drawImage(left + 90, y, symbol.asImage(QSize(22, 14)))
            painter.drawText(left + 120, y + 11, category.label())
    painter.end()
    image.save(target, "PNG", 0)


if __name__ == "__main__":
    application = QgsApplication([], True)
    application.initQgis()
    main(*sys.argv[1:])
    os._exit(0)
