"""geodiv for QGIS: Processing algorithms that run the geodiv command as a program of its own."""

from __future__ import annotations


def classFactory(iface):
    """The plugin, as QGIS asks for it."""
    from .plugin import GeodivPlugin

    return GeodivPlugin(iface)
