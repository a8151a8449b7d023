-- For the page of the process: up to $most cases of each source and client as dots, and how many cases began and ended in each week.
WITH cases AS (
    SELECT source, client, implementation_id, tasks, started_at, ended_at, lead_time_ms, coalesce(p_ended, 1) >= 0.5 AS has_ended
    FROM process_cases WHERE started_at IS NOT NULL AND ($client IS NULL OR client = $client)
), variants AS (
    SELECT *, row_number() OVER (PARTITION BY source, client ORDER BY cases DESC, tasks) AS variant
    FROM (SELECT source, client, tasks, count(*) AS cases FROM process_cases WHERE $client IS NULL OR client = $client GROUP BY source, client, tasks)
), dots AS (
    SELECT *, row_number() OVER (PARTITION BY source, client ORDER BY hash(implementation_id), implementation_id) AS place FROM cases QUALIFY place <= $most
), moments AS (
    SELECT source, client, started_at AS moment, 1 AS began, 0 AS ended FROM cases
    UNION ALL SELECT source, client, ended_at, 0, 1 FROM cases WHERE has_ended AND ended_at IS NOT NULL
)
SELECT 'dot' AS kind, d.source, d.client, epoch(d.started_at) AS second, d.lead_time_ms / 3600000 AS lead_hours, v.variant, NULL AS began, NULL AS ended
FROM dots AS d JOIN variants AS v ON d.source = v.source AND d.client IS NOT DISTINCT FROM v.client AND d.tasks = v.tasks
UNION ALL
SELECT 'week', source, client, 345600 + 604800 * floor((epoch(moment) - 345600) / 604800), NULL, NULL, sum(began), sum(ended)
FROM moments GROUP BY source, client, floor((epoch(moment) - 345600) / 604800)
ORDER BY kind, source, client, second, lead_hours, variant;
