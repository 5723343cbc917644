"""NO DATA. Margins of error and budgets before a run."""
