"""Unbiased estimates with intervals for the areas and queries of a TopDown run."""
