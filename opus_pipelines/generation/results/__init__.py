"""A contract's result as tables: rows, checks, staleness, retention and erasure."""
