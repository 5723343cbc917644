"""TopDown: consistent microdata for every block from noisy measurements at every level of the geography.

Schemas, recodes, budgets and code tables are data files here; a user's own TOML may define others. Planning opens
no data; measuring goes through ``products.run.account`` like that of every other product.
"""
