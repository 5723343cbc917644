"""CONFIDENTIAL. Records of two files put together: agreement, putative and confirmed re-identification, guessers, and who is vulnerable."""
