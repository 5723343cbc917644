"""SafeTab-P, the Detailed DHC-A: persons by sex and age for detailed groups, its recipe and configurations."""
