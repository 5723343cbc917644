"""Recipes, one per data product, and their data files."""
