"""From noisy measurements of a parent's children to integer histograms that add up, parent by parent.

What enters is public: measurements, variances, invariants and the parent's final counts. A fractional point is solved
exactly and certified, then rounded by a flow that keeps sums and bounds.
"""
