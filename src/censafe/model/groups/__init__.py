"""Values of population groups that travel between rooms: levels, tables, measurements and estimates."""
