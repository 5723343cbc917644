"""Integers of blocks made to agree with another histogram of the same blocks: relations between persons and households of the DHC.

Counts of the blocks come in, one histogram at a time, with what the relations ask of every block; counts that meet them go out.
"""
