"""A contract's result as tables: its rows, their checks, whether it is current, and how it goes."""
