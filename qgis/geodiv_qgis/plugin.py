"""The plugin: it registers the Processing provider and takes it away again."""

from __future__ import annotations

from qgis.core import QgsApplication

from .provider import GeodivProvider


class GeodivPlugin:
    """What QGIS loads, with or without a window."""

    def __init__(self, iface):
        self.iface = iface
        self.provider = None

    def initProcessing(self):
        """Register the provider; ``qgis_process`` calls this alone."""
        self.provider = GeodivProvider()
        QgsApplication.processingRegistry().addProvider(self.provider)

    def initGui(self):
        """Register the provider in the desktop."""
        self.initProcessing()

    def unload(self):
        """Take the provider away."""
        if self.provider is not None:
            QgsApplication.processingRegistry().removeProvider(self.provider)
