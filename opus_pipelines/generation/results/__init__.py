"""A contract's result as tables: rows, checks, changes and staleness."""
