"""SafeTab-P: the Detailed DHC-A, persons by detailed group, sex and age.

Public facts are in ``tables`` and the configurations. ``recipe`` is CONFIDENTIAL: records enter there, and their counts
leave through ``censafe.privacy.measure.adaptive`` only.
"""
