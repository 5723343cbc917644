"""Confidential census records in, protected tables and microdata with their error out."""

__version__ = "0.1.0"
