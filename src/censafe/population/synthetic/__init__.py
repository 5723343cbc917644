"""Synthetic populations in the Bureau's layouts, of any size, consistent by construction.

Nothing here is about anybody: people are drawn from published facts and model choices that `data/marginals.toml`
states, so a synthetic folder may be shared and is used for demonstrations, tests and benchmarks.
"""
