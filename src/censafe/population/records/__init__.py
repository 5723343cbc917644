"""CONFIDENTIAL. Records of anyone in their own files: a layout becomes counts by area and cell, and findings.

Files are read, coded and counted by the embedded engine; no row passes through Python. What leaves are the tree of the areas, exact histograms,
counts of units, the codes of the areas, and findings that name files, columns and numbers of rows, never values.
"""
