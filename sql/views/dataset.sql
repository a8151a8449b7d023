CREATE OR REPLACE VIEW $view AS
FROM read_parquet(
    list_prepend(getvariable('empty') || '/$view.parquet', coalesce(getvariable('files')['$view'], [])),
    union_by_name = true, hive_partitioning = false
);
