"""Published tables of population groups: rows, files, checks, codebook, statement."""
