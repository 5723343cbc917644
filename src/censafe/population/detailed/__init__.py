"""CONFIDENTIAL. Record layouts, readers and validation of the SafeTab inputs.

What enters: person or household records, the public block file GRF-C, and for households the public totals of
population groups. What leaves: compact typed tables inside the relational engine, the distinct combinations of
codes, and findings that name files, columns and numbers of rows, never values of a record.
"""
