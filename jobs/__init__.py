"""Dagster jobs, their schedules and partitions. Add a job here when people or schedules need a stable thing to start."""
