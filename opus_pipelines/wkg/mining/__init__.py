"""Mining: the aggregates of sources, counted by DuckDB in this process or by Spark, with the same rows from both.

The queries that count are files in `sql/wkg`, one text for both engines, which read the view `observations`. DuckDB
makes it of the implementations by the queries in `sql/wkg/duckdb`, and Spark by those in `sql/wkg/spark`.

In: the folders of implementations of each source, and the aliases that lead from raw names to task ids.

Out: one Arrow table for each aggregate, with the column `source`.

Door: `engines.mine_aggregates`.
"""
