"""Controlled rounding: integers next to a fractional point that keep all sums and bounds of a parent."""
