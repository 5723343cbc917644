"""From the measurements of a level to integer histograms that add up to the level above, parent by parent."""
