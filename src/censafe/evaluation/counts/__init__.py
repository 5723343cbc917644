"""CONFIDENTIAL. What noise did to block histograms: a confidential file and what was published from it, compared.

A :class:`~.pairing.Pair` holds the truth and one or more published runs over one spine; :func:`~.cells.match` brings the
counts of any query and area list together, and every measure here reads those. Results are Arrow tables.
"""
