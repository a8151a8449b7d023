-- Where cases wait: before which activity, at which hand-over from one person to another, and for whom; the longest sums first.
-- opus query process_waits --set client=CLIENT --set source=SOURCE
-- A wait runs from the end of the step before to the start of the step. In a log without starts it has the work of the step in it.
WITH steps AS (
    SELECT source, client, task_id, before_task_id, actor, before_actor, wait_ms
    FROM process_steps
    WHERE wait_ms IS NOT NULL
        AND coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
        AND coalesce(source = getvariable('source')::VARCHAR, getvariable('source') IS NULL)
), waits AS (
    SELECT
        source, client, if(grouping(actor) = 0, 'person', if(grouping(before_task_id) = 0, 'hand-over', 'activity')) AS level,
        before_task_id, task_id, actor, count(*) AS waits, sum(wait_ms) AS wait_ms, median(wait_ms) AS wait_ms_p50
    FROM (SELECT * REPLACE (if(before_actor <> actor, before_task_id, NULL) AS before_task_id) FROM steps)
    GROUP BY GROUPING SETS ((source, client, task_id), (source, client, before_task_id, task_id), (source, client, actor))
    HAVING grouping(actor) = 1 OR actor IS NOT NULL
)
SELECT
    w.source, w.client, level, concat_ws(' → ', earlier.title, later.title, w.actor) AS waits_at, waits, wait_ms / 3600000 AS wait_hours,
    wait_ms / nullif(sum(wait_ms) FILTER (WHERE level = 'activity') OVER (PARTITION BY w.source, w.client), 0) AS share, wait_ms_p50 / 3600000 AS wait_hours_p50
FROM waits AS w
LEFT JOIN (SELECT task_id, title FROM wkg_tasks) AS earlier ON earlier.task_id = w.before_task_id
LEFT JOIN (SELECT task_id, title FROM wkg_tasks) AS later ON later.task_id = w.task_id
WHERE level <> 'hand-over' OR w.before_task_id IS NOT NULL
ORDER BY w.source, w.client, level, wait_ms DESC, waits_at;
