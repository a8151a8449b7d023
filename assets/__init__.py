"""Dagster assets and asset checks, one module for each stage.

Each calls `opus_pipelines` and reports the result. They contain no logic of their own.
"""
