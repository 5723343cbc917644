"""Configurations of all products: where they come from, the rules they share, those that ship."""
