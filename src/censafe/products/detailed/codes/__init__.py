"""PUBLIC FACTS. Race and ethnicity codes, characteristic iterations, and in how many groups a record can be."""
