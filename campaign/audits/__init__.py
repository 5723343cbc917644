"""Audits of privacy on random small worlds: neighbors searched against the claims, and two-sample tests on what is measured of them."""
