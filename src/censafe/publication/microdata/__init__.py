"""Microdata detail files and block histograms, written and read."""
