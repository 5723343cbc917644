"""CONFIDENTIAL. Pages of attacks, from their files alone."""
