"""The mechanisms: exact counts, groups and histograms in, noisy measurements out."""
