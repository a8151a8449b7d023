"""Stores datasets on disk: the layout of the folders, atomic files, the lock, and the search for text.

In: rows and a root folder. Out: Parquet files that readers see whole or not at all. Door: `layout.Lake`.

Inside:
- `object_store`: a lake in a bucket of an S3-compatible store, with a working folder on this machine;
- `models`: the trained models of a lake: their weights, their cards, and which one serves.
"""
