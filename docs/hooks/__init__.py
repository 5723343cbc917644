"""What `make docs` writes by itself: pages that follow from the program, notebooks, formulas and links."""
