"""Fuzz: every reader of the program on spoiled files, in a process of its own, under a coverage-guided fuzzer where one is installed."""
