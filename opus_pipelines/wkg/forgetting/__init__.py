"""A client taken out of everything the lake keeps, and the search that proves it."""
