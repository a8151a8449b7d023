"""Questions in SQL: parsed first and held to one SELECT over the views, then run locked, limited and timed.

In: the text of a question, and a DuckDB connection with the views. Out: its rows. Doors: `gate.check`, `guard.timed`.
"""
