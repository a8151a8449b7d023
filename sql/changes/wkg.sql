-- Every figure of a task or an edge that differs between two snapshots, and the touched cases (sql/changes/touched.sql) that hold the task
-- or the edge. Views: old_tasks, new_tasks, old_edges, new_edges, old_needs, new_needs, touched.
WITH
    critical AS (
        SELECT 'old' AS side, task_id, count(*) AS groups FROM old_needs WHERE needed GROUP BY task_id
        UNION ALL SELECT 'new', task_id, count(*) FROM new_needs WHERE needed GROUP BY task_id
    ),
    tasks AS (
        SELECT side, task_id AS src, title, unnest([
            {'figure': 'implementations', 'number': implementations::DOUBLE, 'said': NULL::VARCHAR},
            {'figure': 'title', 'number': NULL, 'said': title},
            {'figure': 'p', 'number': p, 'said': NULL},
            {'figure': 'q', 'number': q, 'said': NULL},
            {'figure': 'duration_ms_p50', 'number': duration_ms_p50, 'said': NULL},
            {'figure': 'cost_usd_p50', 'number': cost_usd_p50, 'said': NULL},
            {'figure': 'critical_in', 'number': coalesce(c.groups, 0)::DOUBLE, 'said': NULL}
        ], recursive := true)
        FROM (SELECT 'old' AS side, * FROM old_tasks UNION ALL BY NAME SELECT 'new' AS side, * FROM new_tasks) AS t
        LEFT JOIN critical AS c USING (side, task_id)
    ),
    edges AS (
        SELECT side, src, dst, unnest([
            {'figure': 'transitions', 'number': transitions::DOUBLE},
            {'figure': 'probability', 'number': probability},
            {'figure': 'wait_ms_mean', 'number': wait_ms_mean}
        ], recursive := true)
        FROM (SELECT 'old' AS side, * FROM old_edges UNION ALL BY NAME SELECT 'new' AS side, * FROM new_edges)
    ),
    figures AS (
        SELECT 'task' AS kind, side, src, NULL::VARCHAR AS dst, figure, number, said FROM tasks
        UNION ALL BY NAME SELECT 'edge' AS kind, side, src, dst, figure, number, NULL AS said FROM edges
    ),
    compared AS (
        SELECT
            coalesce(n.kind, o.kind) AS kind, coalesce(n.src, o.src) AS src, coalesce(n.dst, o.dst) AS dst, coalesce(n.figure, o.figure) AS figure,
            CASE WHEN o.figure IS NULL THEN 'added' WHEN n.figure IS NULL THEN 'removed' ELSE 'changed' END AS change,
            o.number AS value_before, n.number AS value_after, o.said AS text_before, n.said AS text_after
        FROM (FROM figures WHERE side = 'old') AS o
        FULL JOIN (FROM figures WHERE side = 'new') AS n
            ON o.kind = n.kind AND o.src = n.src AND o.dst IS NOT DISTINCT FROM n.dst AND o.figure = n.figure
    ),
    differing AS (
        FROM compared
        WHERE (change <> 'changed' AND figure IN ('implementations', 'transitions'))
            OR (change = 'changed' AND (
                text_before IS DISTINCT FROM text_after
                OR (value_before IS NULL) <> (value_after IS NULL)
                OR abs(value_after - value_before) > 1e-9 * greatest(1, abs(value_before))
            ))
    ),
    steps AS (
        SELECT DISTINCT 'task' AS kind, implementation_id, source, change, unnest(list_concat(tasks_before, tasks_after)) AS src, NULL AS dst
        FROM touched
    ),
    pairs AS (
        SELECT DISTINCT 'edge' AS kind, implementation_id, source, change, unnest(list_concat(
            list_transform(range(1, len(tasks_before)), lambda i: {'src': tasks_before[i], 'dst': tasks_before[i + 1]}),
            list_transform(range(1, len(tasks_after)), lambda i: {'src': tasks_after[i], 'dst': tasks_after[i + 1]})
        ), recursive := true)
        FROM touched
    ),
    behind AS (
        SELECT
            kind, src, dst, list(DISTINCT source ORDER BY source) AS sources,
            count(*) FILTER (change = 'added') AS cases_added, count(*) FILTER (change = 'removed') AS cases_removed,
            count(*) FILTER (change = 'changed') AS cases_changed,
            list(implementation_id ORDER BY implementation_id)[:$most] AS implementation_ids
        FROM (FROM steps UNION ALL BY NAME FROM pairs)
        GROUP BY ALL
    ),
    titles AS (
        SELECT task_id, coalesce(n.title, o.title) AS title FROM old_tasks AS o FULL JOIN new_tasks AS n USING (task_id)
    )
SELECT
    d.kind, d.src, d.dst, s.title, t.title AS dst_title, d.change, d.figure, d.value_before, d.value_after, d.text_before, d.text_after,
    CASE WHEN b.kind IS NULL THEN $otherwise ELSE 'cases' END AS because, coalesce(b.sources, []) AS sources,
    coalesce(b.cases_added, 0) AS cases_added, coalesce(b.cases_removed, 0) AS cases_removed, coalesce(b.cases_changed, 0) AS cases_changed,
    coalesce(b.implementation_ids, []) AS implementation_ids
FROM differing AS d
LEFT JOIN behind AS b ON b.kind = d.kind AND b.src = d.src AND b.dst IS NOT DISTINCT FROM d.dst
LEFT JOIN titles AS s ON s.task_id = d.src
LEFT JOIN titles AS t ON t.task_id = d.dst
