"""CONFIDENTIAL. What is SafeTab's own in its evaluation: draws of levels, errors by kind of cell, and its true tables."""
