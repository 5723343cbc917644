"""Synthetic persons, households, housing units and group quarters as the DHC reads them, drawn together.

The people are drawn by the kernels of the other layouts, with all 24 kinds of group quarters, blocks without anybody, and
what the Census Edited File says of a household, each derived from its members. Nothing here is about anybody.
"""
