"""Dagster resources: the lake with its lock, the Spark session, the sentence encoder.

Each is a thin holder around `opus_pipelines`.
"""
