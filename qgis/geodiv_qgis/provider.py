"""The Processing provider: its algorithms, its icon, and the setting that says where the geodiv command is."""

from __future__ import annotations

from pathlib import Path

from processing.core.ProcessingConfig import ProcessingConfig, Setting
from qgis.core import QgsProcessingProvider
from qgis.PyQt.QtGui import QIcon

from .algorithms import EnforceAlgorithm, ScoreAlgorithm, SweepAlgorithm

EXECUTABLE = "GEODIV_EXECUTABLE"


class GeodivProvider(QgsProcessingProvider):
    """Algorithms named ``geodiv:...``."""

    def id(self):
        return "geodiv"

    def name(self):
        return "geodiv"

    def longName(self):
        return "geodiv: maps of visits that do not give people away"

    def icon(self):
        return QIcon(str(Path(__file__).with_name("icon.svg")))

    def load(self):
        """Add the setting, then the algorithms."""
        ProcessingConfig.settingIcons[self.name()] = self.icon()
        said = "Path of the geodiv command (empty: looked for on the PATH)"
        ProcessingConfig.addSetting(Setting(self.name(), EXECUTABLE, said, "", valuetype=Setting.FILE))
        ProcessingConfig.readSettings()
        self.refreshAlgorithms()
        return True

    def unload(self):
        ProcessingConfig.removeSetting(EXECUTABLE)

    def loadAlgorithms(self):
        for algorithm in (ScoreAlgorithm, EnforceAlgorithm, SweepAlgorithm):
            self.addAlgorithm(algorithm())

    def supportedOutputVectorLayerExtensions(self):
        """GeoPackage alone: it carries the styles and the other tables."""
        return ["gpkg"]

    def defaultVectorFileExtension(self, hasGeometry=True):
        return "gpkg"
