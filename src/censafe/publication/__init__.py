"""Public. Writers of tables, codebooks, manifest and certificate."""
