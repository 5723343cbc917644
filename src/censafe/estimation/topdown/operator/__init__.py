"""Least squares of parents with very many cells: a diagonal and sums over groups of cells, never a matrix of cells by cells."""
