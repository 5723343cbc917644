"""PUBLIC. Arithmetic after the noise: deterministic functions of measurements and public geography, free to repeat."""
