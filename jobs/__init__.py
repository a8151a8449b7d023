"""Dagster jobs, their schedules and partitions.

Add a job here where people or schedules need a stable name to start.
"""
