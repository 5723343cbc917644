"""SafeTab-H: the Detailed DHC-B, households by detailed group, type and tenure.

Public facts are in ``variants`` and the configurations. ``recipe`` is CONFIDENTIAL: records enter there, and their counts
leave through ``censafe.privacy.measure.groups`` only.
"""
