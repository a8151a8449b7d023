"""DuckDB over the lake: views, shipped queries, and what `opus best`, `explain` and `status` say."""
