"""CONFIDENTIAL. Records consistent with published tables, how far they are determined, and claims that hold in every consistent data set."""
