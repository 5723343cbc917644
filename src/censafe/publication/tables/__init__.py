"""Published tables in the Bureau's layout and as one tidy table, with codebook and checks."""
