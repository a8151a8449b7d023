"""The command line `opus`.

Reading commands load neither Dagster nor Spark nor torch; writing commands run Dagster jobs.

In: command line arguments. Out: text, files and exit codes. Door: `main.main`.
"""
