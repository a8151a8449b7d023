"""Stores datasets on disk: the layout of the folders, atomic files, the lock, and the search for text.

In: rows and a root folder. Out: Parquet files that readers see whole or not at all. Door: `lake.layout.Lake`.
"""
