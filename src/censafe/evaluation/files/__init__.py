"""Files of any origin that hold what is compared: microdata and block histograms, ours or the Bureau's."""
