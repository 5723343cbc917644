"""CONFIDENTIAL. Exact counts of records over complete public key domains.

Records enter as typed tables of the engine; ``ExactCounts`` leave, for ``privacy.measure`` alone. What is counted is
data: ``definitions`` reads and checks a definition file, ``counting`` scans the records once for all tables,
``truncation`` bounds a household.
"""
