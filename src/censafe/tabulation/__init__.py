"""CONFIDENTIAL. Exact counts: relational engine, table definitions, key domains."""
