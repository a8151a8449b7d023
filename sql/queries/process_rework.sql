-- Rework and loops: activities that a case does more than once, how often, directly again or later, and what the repetitions cost.
-- opus query process_rework --set client=CLIENT --set source=SOURCE
-- The first time is no rework. `cost_share`: of the cost of all steps of the source and client. Sums are of the repetitions whose figure is known.
WITH cases AS (
    FROM wkg_cases
    WHERE kind IS DISTINCT FROM 'model'
        AND coalesce(client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
        AND coalesce(source = getvariable('source')::VARCHAR, getvariable('source') IS NULL)
), again AS (
    SELECT
        source, client, implementation_id, unnest(range(1, len(tasks) + 1)) AS position, unnest(tasks) AS task_id,
        unnest(list_prepend(NULL, tasks[:-2])) AS before_task_id, unnest(task_duration_ms) AS work_ms, unnest(task_cost_usd) AS cost_usd
    FROM cases
    WHERE list_unique(tasks) < len(tasks)
), repeated AS (
    SELECT *, row_number() OVER (PARTITION BY implementation_id, task_id ORDER BY position) AS time FROM again QUALIFY time > 1
), totals AS (
    SELECT source, client, sum(list_sum(task_cost_usd)) AS cost_usd, count(*) AS cases FROM cases GROUP BY source, client
)
SELECT
    a.source, a.client, title AS activity, count(DISTINCT implementation_id) AS cases, count(DISTINCT implementation_id) / any_value(t.cases) AS share_of_cases,
    count(*) AS repetitions, count(*) FILTER (WHERE before_task_id = task_id) AS directly_again, max(time) AS most_times, sum(work_ms) / 3600000 AS work_hours,
    sum(a.cost_usd) AS cost_usd, sum(a.cost_usd) / nullif(any_value(t.cost_usd), 0) AS cost_share
FROM repeated AS a JOIN wkg_tasks USING (task_id)
JOIN totals AS t ON a.source = t.source AND a.client IS NOT DISTINCT FROM t.client
GROUP BY a.source, a.client, title
ORDER BY a.source, a.client, cost_usd DESC NULLS LAST, repetitions DESC, activity;
