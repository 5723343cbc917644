"""CONFIDENTIAL. Record layouts, readers and validation of the input.

What enters: the Bureau's PHSafe input as CSV, Parquet or fixed-width CEF files. What leaves: compact typed
tables inside the relational engine, and findings that name files, columns and numbers of rows, never values.
"""
