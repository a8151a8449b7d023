"""A contract's HTML page."""
