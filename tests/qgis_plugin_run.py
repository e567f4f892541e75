"""The plugin inside the real QGIS; run by QGIS's own Python, prints JSON: load | cancel, VISITS, POLICY, FOLDER."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path[:0] = ["/usr/share/qgis/python/plugins", str(Path(__file__).parent.parent / "qgis")]

import processing  # noqa: E402
from geodiv_qgis.provider import GeodivProvider  # noqa: E402
from processing.core.Processing import Processing  # noqa: E402
from qgis.core import (  # noqa: E402
    QgsApplication,
    QgsFeatureRequest,
    QgsProcessingContext,
    QgsProcessingFeatureSourceDefinition,
    QgsProcessingFeedback,
    QgsProcessingOutputLayerDefinition,
    QgsProject,
    QgsVectorLayer,
)


class Impatient(QgsProcessingFeedback):
    """Cancels as soon as the command says what it does."""

    def setProgressText(self, text: str) -> None:
        self.cancel()


def load(visits: str, policy: str, folder: str) -> dict:
    """Run enforce on the selected rows of a layer in a project, load both results, and say how they are drawn."""
    layer = QgsVectorLayer(visits, "visits", "ogr")
    QgsProject.instance().addMapLayer(layer)
    layer.selectByExpression("\"poi_category\" <> 'gym'")
    source = QgsProcessingFeatureSourceDefinition(
        layer.id(),
        selectedFeaturesOnly=True,
        featureLimit=-1,
        geometryCheck=QgsFeatureRequest.GeometryAbortOnInvalid,
    )
    into = {
        name: QgsProcessingOutputLayerDefinition(str(Path(folder) / f"{name}.gpkg"), QgsProject.instance())
        for name in ("OUTPUT", "WORK")
    }
    result = processing.runAndLoadResults("geodiv:enforce", {"INPUT": source, "POLICY": policy, **into})
    drawn = {}
    for added in QgsProject.instance().mapLayers().values():
        if added.id() != layer.id():
            renderer = added.renderer()
            drawn[Path(added.source().split("|")[0]).stem] = [renderer.type(), renderer.classAttribute()]
    return {"drawn": drawn, "zones": result["N_ZONES"]}


def cancel(visits: str, policy: str, folder: str) -> dict:
    """Run score and cancel it at its first word."""
    algorithm = QgsApplication.processingRegistry().createAlgorithmById("geodiv:score")
    context, feedback = QgsProcessingContext(), Impatient()
    context.setProject(QgsProject.instance())
    parameters = {"INPUT": visits, "POLICY": policy, "OUTPUT": str(Path(folder) / "w.gpkg")}
    result, ok = algorithm.run(parameters, context, feedback)
    return {"result": result, "ok": ok, "cancelled": feedback.isCanceled()}


if __name__ == "__main__":
    application = QgsApplication([], False)
    application.initQgis()
    Processing.initialize()
    provider = GeodivProvider()
    QgsApplication.processingRegistry().addProvider(provider)
    done = {"load": load, "cancel": cancel}[sys.argv[1]](*sys.argv[2:])
    sys.stdout.write(json.dumps(done) + "\n")
    sys.stdout.flush()
    os._exit(0)  # QGIS 3.22 crashes when Python tidies up
