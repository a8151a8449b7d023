-- Plan against actual by step: in how many of the cases that state a workflow's id a planned step is left out, repeated, or another one is added.
-- opus query plan_deviations --set client=CLIENT
-- A case states its workflow in the attribute workflow_id, a column of the client's export. Cases that go on are left out.
WITH cases AS (
    SELECT c.client, c.tasks, c.success, c.cost_usd, attributes['workflow_id'] AS workflow_id
    FROM process_cases AS c SEMI JOIN workflows_optimized AS o ON attributes['workflow_id'] = o.workflow_id AND c.client = o.client
    WHERE coalesce(p_ended, 1) >= 0.5 AND coalesce(c.client = getvariable('client')::VARCHAR, getvariable('client') IS NULL)
), planned AS (
    SELECT workflow_id, list(DISTINCT task_id) AS planned_tasks FROM workflows_tasks WHERE kind = 'task' AND task_id IS NOT NULL GROUP BY workflow_id
), deviations AS (
    SELECT
        client, workflow_id, success, cost_usd, unnest(list_concat(
            [{'deviation': 'left out', 'task_id': t} FOR t IN planned_tasks IF NOT list_contains(tasks, t)],
            [{'deviation': 'added', 'task_id': t} FOR t IN list_distinct(tasks) IF NOT list_contains(planned_tasks, t)],
            [{'deviation': 'repeated', 'task_id': t} FOR t IN planned_tasks IF len(list_filter(tasks, lambda one: one = t)) > 1]
        ), recursive := true)
    FROM cases JOIN planned USING (workflow_id)
), sizes AS (
    SELECT workflow_id, count(*) AS all_cases FROM cases GROUP BY workflow_id
)
SELECT
    client, workflow_id, deviation, any_value(title) AS step, count(*) AS cases, count(*) / any_value(all_cases) AS share,
    avg(success::INT) AS success_share, avg(cost_usd) AS cost_usd_mean
FROM deviations JOIN sizes USING (workflow_id) LEFT JOIN (SELECT task_id, title FROM wkg_tasks) USING (task_id)
GROUP BY client, workflow_id, deviation, task_id
ORDER BY client, workflow_id, cases DESC, deviation, step;
