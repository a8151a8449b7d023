"""SQL of the project: `wkg/` is run by Spark or by DuckDB, `wkg/spark/` by Spark, the other folders by DuckDB."""
