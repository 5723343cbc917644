"""CONFIDENTIAL. The tables of the Bureau's summary metrics, filled from a pair."""
