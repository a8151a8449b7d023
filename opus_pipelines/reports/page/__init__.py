"""A contract's page: one HTML file that needs nothing else, neither network nor server. What stands on it is told by the caller."""
