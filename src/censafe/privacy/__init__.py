"""The privacy mechanism. Budgets, noise laws, samplers, mechanisms, ledger, accounting.

Only exact counts, plans and keys enter; only noisy measurements, and statements about their noise and its cost, leave.
The package imports ``model`` and ``errors`` and nothing else of the package. No noise is drawn before its cost is in the
ledger, and no float stands between a budget's text and its fraction.
"""
