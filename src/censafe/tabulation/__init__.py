"""CONFIDENTIAL. Exact counts of records over complete public key domains.

Records enter as typed tables of the engine; ``ExactCounts`` leave, for ``privacy.measure`` alone. What is counted is
data: ``loading`` checks a definition file, ``coding`` finds the atoms that its conditions need, ``profiles``
scans the records once for all tables, ``truncation`` bounds a household, ``counting`` reads off the tables.
"""
