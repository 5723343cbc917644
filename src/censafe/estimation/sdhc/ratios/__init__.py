"""Ratios of noisy counts whose bounds are known: quadrature, closed forms, sums over whole numbers, and their intervals."""
