"""Taxonomies: which coarser values help on these visits, which are to be had, and how two of them differ."""
