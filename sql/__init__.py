"""SQL of the project: `wkg/` is run by Spark, `views/`, `queries/`, `explain/` and `changes/` by DuckDB."""
