"""NO DATA. Budgets, margins of error and what a loss means, from configurations alone."""
