"""Batches of parents of one level: estimated by threads of this process, or on the workers of an engine, to the same integers."""
