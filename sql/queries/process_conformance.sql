-- How far history conforms to a ranked workflow: cases that do all its steps and no others in its order, and what the other cases do instead.
-- opus query process_conformance --set workflow=WORKFLOW
-- The cases are the finished ones of the contract or, where cases state none, of the client that do at least half of its steps. An order is
-- broken where the first of both steps never comes before the last of the other. The default is the best Reward of all rank-1 workflows.
WITH this AS (
    SELECT client, contract, result, workflow_id FROM workflows_optimized
    WHERE workflow_id = coalesce(getvariable('workflow')::VARCHAR,
        (SELECT workflow_id FROM workflows_optimized WHERE rank = 1 ORDER BY reward_usd DESC NULLS LAST, workflow_id LIMIT 1))
), nodes AS (
    SELECT node, task_id FROM workflows_tasks SEMI JOIN this USING (client, contract, result, workflow_id) WHERE kind = 'task' AND task_id IS NOT NULL
), arcs AS (
    SELECT src, dst FROM workflows_edges SEMI JOIN this USING (client, contract, result, workflow_id)
), orders AS (
    SELECT DISTINCT a.task_id AS first, b.task_id AS second
    FROM arcs JOIN nodes AS a ON a.node = src JOIN nodes AS b ON b.node = dst WHERE a.task_id <> b.task_id
), steps AS (
    SELECT list(DISTINCT task_id) AS tasks FROM nodes
), cases AS (
    SELECT c.implementation_id, c.tasks, c.success, c.cost_usd, c.lead_time_ms
    FROM process_cases AS c JOIN this ON c.client = this.client AND coalesce(c.contract = this.contract, true), steps
    WHERE coalesce(c.p_ended, 1) >= 0.5 AND 2 * len(list_intersect(c.tasks, steps.tasks)) >= len(steps.tasks)
), deviations AS (
    SELECT implementation_id, 'left out' AS deviation, task_id AS first, NULL AS second
    FROM (SELECT implementation_id, unnest(list_filter(steps.tasks, lambda task: NOT list_contains(cases.tasks, task))) AS task_id FROM cases, steps)
    UNION ALL
    SELECT implementation_id, 'added', task_id, NULL
    FROM (SELECT implementation_id, unnest(list_filter(list_distinct(cases.tasks), lambda task: NOT list_contains(steps.tasks, task))) AS task_id FROM cases, steps)
    UNION ALL
    SELECT implementation_id, 'repeated', task_id, NULL
    FROM (SELECT implementation_id, unnest(list_filter(steps.tasks, lambda task: len(list_filter(cases.tasks, lambda t: t = task)) > 1)) AS task_id FROM cases, steps)
    UNION ALL
    SELECT implementation_id, 'order broken', first, second
    FROM cases, orders
    WHERE list_contains(tasks, first) AND list_contains(tasks, second)
        AND list_position(tasks, first) > len(tasks) - list_position(list_reverse(tasks), second) + 1
), fitting AS (
    SELECT implementation_id, 'none: conforms' AS deviation, NULL AS first, NULL AS second FROM cases ANTI JOIN deviations USING (implementation_id)
    UNION ALL SELECT NULL, 'none: conforms', NULL, NULL  -- a row also where no case conforms
)
SELECT
    any_value(this.client) AS client, any_value(this.contract) AS contract, any_value(workflow_id) AS workflow_id, deviation,
    concat_ws(' before ', any_value(a.title), any_value(b.title)) AS activity, count(DISTINCT d.implementation_id) AS cases,
    count(DISTINCT d.implementation_id) / nullif((SELECT count(*) FROM cases), 0) AS share, avg(CAST(success AS INT)) AS success_share,
    avg(cost_usd) AS cost_usd_mean, median(lead_time_ms) / 3600000 AS lead_hours_p50
FROM (FROM fitting UNION ALL FROM deviations) AS d LEFT JOIN cases USING (implementation_id), this
LEFT JOIN (SELECT task_id, title FROM wkg_tasks) AS a ON a.task_id = first
LEFT JOIN (SELECT task_id, title FROM wkg_tasks) AS b ON b.task_id = second
GROUP BY deviation, first, second
ORDER BY deviation <> 'none: conforms', cases DESC, deviation, activity;
