"""SafeTab-H, the Detailed DHC-B: household type and tenure for detailed groups, its recipe and configurations."""
