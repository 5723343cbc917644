"""Value types of TopDown: histograms and their measurements, passes, and what an estimate asks for."""
