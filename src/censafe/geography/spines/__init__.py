"""The hierarchies that TopDown walks: standard, by American Indian areas, optimized block groups, bypass; sums over them."""
