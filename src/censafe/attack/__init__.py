"""CONFIDENTIAL. Reconstruction and re-identification of records from published tables, and the defenses that agencies use, on the user's own data.

What this room writes compares with the truth. It lies on no release path, and no other room but the public interface imports it.
"""
