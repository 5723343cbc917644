"""CONFIDENTIAL. Defenses other than noise, for study: swapping, suppression, coarsening and the cell-key method.

Every defense takes persons or counts and returns persons, or tables as intervals. None lies on a release path, and none but permutation swapping has a formal guarantee.
What may enter is a defense that an agency uses or has proposed, with its name in ``registry``.
"""
