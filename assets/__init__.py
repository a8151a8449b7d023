"""Dagster assets and asset checks, a module a stage: each calls `opus_pipelines` and reports what came of it. No logic
lives here.
"""
