"""CONFIDENTIAL. Record layouts, readers and validation of the input.

What enters: the Bureau's PHSafe input as CSV, Parquet or fixed-width CEF files. What leaves: compact typed
tables inside the relational engine, and findings that name files, columns and numbers of rows, never values.
"""

from censafe.population.findings import Finding
from censafe.population.households.load import Population
from censafe.population.households.source import PopulationSource, open_population
from censafe.population.households.validation import ValidationReport, validate

__all__ = ["Finding", "Population", "PopulationSource", "ValidationReport", "open_population", "validate"]
