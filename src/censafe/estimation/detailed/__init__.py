"""Public arithmetic on measurements: totals, areas with the same blocks, suppression flags.

What enters are measurements, which are public. Everything here is a deterministic function of them and of public
geography, costs no privacy budget and can be repeated with other options.
"""
