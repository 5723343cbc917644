"""The fractional histograms of one parent's children: exact, certified least squares under all constraints."""
