"""From noisy S-DHC counts to non-negative counts, ratios within bounds, and credible intervals.

What enters is public: published noisy counts with their variances. The models are the Census Bureau's; closed forms and
quadrature take the place of sampling.
"""
