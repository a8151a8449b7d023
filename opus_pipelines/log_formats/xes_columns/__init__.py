"""XES by columns: plain traces are read in whole blocks, with the same result as record by record."""
