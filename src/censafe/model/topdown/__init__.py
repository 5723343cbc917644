"""Value types of TopDown: histograms and their measurements, passes, and requests of an estimate."""
