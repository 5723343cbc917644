"""PUBLIC FACTS. What SafeTab-P and SafeTab-H share: groups, configurations, stability and plans.

The five parameter files and the configuration enter here; no record does. A matrix of distinct code combinations may
pass through ``mapping``, which keeps nothing of it.
"""
