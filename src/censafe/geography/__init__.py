"""Public. Region identifiers, geography levels and the files that define them."""
