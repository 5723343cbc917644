"""How far published counts and unbiased estimates are from the truth, from public figures alone."""
