"""THE DOOR. Budgets, noise laws, samplers, mechanisms, ledger, accounting."""
