"""Best linear unbiased estimates on the tree of geounits, from the answers of every geounit and all below it.

Public noisy answers in, estimates with exact covariances out. Covariances depend on public structure alone, so each is
worked out once for all geounits that are alike; attributes that no query coarsens part the cells into small blocks.
"""
