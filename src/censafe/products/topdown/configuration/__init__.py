"""Configurations of TopDown: keys, schemas, passes, levels, and the rules for them."""
