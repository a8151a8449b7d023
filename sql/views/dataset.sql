CREATE OR REPLACE VIEW $view AS
${selected}FROM read_parquet(
    list_prepend(getvariable('empty') || '/$empty_file', coalesce(getvariable('files')['$view'], [])),
    union_by_name = $by_name, hive_partitioning = $partitions
);
