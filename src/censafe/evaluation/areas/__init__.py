"""The areas that counts are compared for: levels of a spine, lists of other areas, and strata of both."""
