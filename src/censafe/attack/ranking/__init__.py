"""CONFIDENTIAL. The attacker without a solver: candidate records ranked by how often relaxed data sets that fit the tables hold them."""
