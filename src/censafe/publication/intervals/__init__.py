"""Estimates with intervals beside published counts, as files and as a page."""
