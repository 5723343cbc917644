"""PUBLIC. Published results of anyone: what a path holds, with its histograms, tables, geography and noise."""
