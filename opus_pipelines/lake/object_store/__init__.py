"""Keeps a lake in a bucket of an S3-compatible object store, with a working folder on this machine.

In: the address of a lake, as `s3://bucket/prefix`. Out: a folder in which every command works as in any other lake.
Doors: `folders.local_root` gives the folder, and `folders.published_to_store`, which `lake.layout` calls where a writer
holds the lock, publishes what was changed in it.
"""
