"""CONFIDENTIAL. What is PHSafe's own in its evaluation: draws of its tables, margins by cell, and its true tables."""
