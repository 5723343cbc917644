"""CONFIDENTIAL. Empirical privacy loss: how fast the distribution of residuals falls from one value to the next."""
