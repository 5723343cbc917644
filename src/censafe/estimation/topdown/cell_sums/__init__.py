"""Best linear unbiased estimates of named sums of cells on the tree, for histograms with too many cells to hold a covariance of them."""
