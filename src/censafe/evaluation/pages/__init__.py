"""Pages of evaluations, each made from the files in its folder alone."""
