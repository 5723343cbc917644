"""CONFIDENTIAL. Tables of records as files: delimited text, Parquet, and their layouts as data."""
