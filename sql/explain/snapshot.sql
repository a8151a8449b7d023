-- The published snapshot and its size.
SELECT
    snapshot, published_at,
    (SELECT count(*) FROM wkg_tasks) AS tasks, (SELECT count(*) FROM wkg_edges) AS edges,
    (SELECT count(*) FROM wkg_cases) AS cases, (SELECT count(*) FROM wkg_needs WHERE needed) AS needed,
    manifest -> 'engines' ->> 'mining' AS mined_by, manifest -> 'engines' ->> 'graph' AS graph_by, manifest -> 'engines' ->> 'search' AS searched_by
FROM current_snapshot
