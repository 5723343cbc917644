"""Census tables from finished histograms: definitions as data, for any list of areas."""
