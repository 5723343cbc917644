"""Values of population groups that travel between packages: levels, tables, measurements and estimates."""
