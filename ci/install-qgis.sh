#!/bin/sh
# Installs the QGIS and GDAL programs that tests/test_qgis.py and tests/test_qgis_plugin.py use; without them these
# tests are skipped with the reason. For Debian and Ubuntu, as root; about two minutes and 1.2 GB.
# Then: python -m pytest tests/test_qgis.py tests/test_qgis_plugin.py
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends qgis python3-qgis qgis-providers python3-gdal gdal-bin
