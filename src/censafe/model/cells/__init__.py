"""Cells of histograms: which records a number counts, written as text, and the counts."""
