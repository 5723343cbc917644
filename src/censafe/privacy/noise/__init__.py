"""Exact integer noise by address: laws, tables, samplers and their compiled kernels. Nothing here is a float."""
