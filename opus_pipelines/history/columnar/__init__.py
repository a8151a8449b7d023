"""XES by columns: plain traces scanned and made into Task Implementations whole blocks at a time, equal to the record path to the byte."""
