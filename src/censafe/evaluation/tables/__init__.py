"""CONFIDENTIAL. Noise draws of PHSafe and SafeTab against the truth."""
