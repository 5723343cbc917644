"""CONFIDENTIAL. True counts of population groups, region by region."""
