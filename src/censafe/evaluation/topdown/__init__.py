"""CONFIDENTIAL. Runs of TopDown against the truth: level by level, at several budgets, and against comparators."""
