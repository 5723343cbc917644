"""A permanent campaign against censafe: kills, faults, bad input, fuzz, audits, mutants and a soak.

``python -m campaign`` runs it from the top of the repository; docs/campaign.md says what each part does and what it found. It is a program
beside the test suite and not part of it: it runs for hours, draws its trials from a seed, and keeps a folder of results so that it
can be stopped and continued. Inputs come from ``tests/support``.
"""
