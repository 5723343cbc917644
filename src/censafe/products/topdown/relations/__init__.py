"""Persons and households of the DHC that fit: which relations hold between them, as data, and their blocks made to keep them."""
