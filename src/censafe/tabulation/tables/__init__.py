"""CONFIDENTIAL. Tables as data: definitions, one shared scan, and exact counts over complete key domains."""
