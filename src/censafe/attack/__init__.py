"""CONFIDENTIAL. Reconstruction and re-identification of records from published tables, and the defenses that agencies use, on the user's own data.

What this package writes compares with the truth. It lies on no release path, and no other package but the public interface imports it.
"""
