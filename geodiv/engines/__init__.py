"""Engines: where visits become distinct contributions, and contributions are counted. One file each."""
