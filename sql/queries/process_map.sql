-- The map of the process: which activity follows which directly, how often, and the wait between the two; with where cases begin and end.
-- opus query process_map --set client=CLIENT --set source=SOURCE
-- A NULL under `activity` is the beginning of a case, under `next_activity` its end. Cases that probably go on have no end.
WITH arcs AS (
    SELECT source, client, before_task_id AS src, task_id AS dst, count(*) AS times, median(wait_ms) / 3600000 AS wait_hours_p50, sum(wait_ms) / 3600000 AS wait_hours
    FROM (SELECT source, client, before_task_id, task_id, wait_ms FROM process_steps)
    GROUP BY source, client, before_task_id, task_id
    UNION ALL
    SELECT source, client, tasks[-1], NULL, count(*), NULL, NULL
    FROM process_cases WHERE steps > 0 AND coalesce(p_ended, 1) >= 0.5
    GROUP BY source, client, tasks[-1]
)
SELECT source, client, a.title AS activity, b.title AS next_activity, times, wait_hours_p50, wait_hours
FROM arcs
LEFT JOIN (SELECT task_id, title FROM wkg_tasks) AS a ON a.task_id = src
LEFT JOIN (SELECT task_id, title FROM wkg_tasks) AS b ON b.task_id = dst
WHERE coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
    AND coalesce(source = getvariable('source')::VARCHAR, getvariable('source') IS NULL)
ORDER BY source, client, times DESC, activity, next_activity;
