"""Linear estimates of census tables with their standard deviations, made while the noisy answers are at hand."""
