-- The executed cases of history as rows to analyse: one a case, and one a step of a case. Process models are left out.
-- A case goes on where p_ended is below one half. Of a step, `before_` is the step that stands before it in its case.
CREATE OR REPLACE VIEW process_cases AS
SELECT
    source, industry, client, contract, implementation_id, kind_of_case, attributes, success, p_ended, tasks, len(tasks) AS steps, started_at,
    started_at + to_microseconds(CAST(1000 * lead_time_ms AS BIGINT)) AS ended_at, lead_time_ms,
    list_sum(task_duration_ms) AS work_ms, list_sum(task_wait_ms) AS wait_ms, list_sum(task_cost_usd) AS cost_usd
FROM wkg_cases
WHERE kind IS DISTINCT FROM 'model'; -- a lake of an older version does not tell the kinds apart

CREATE OR REPLACE VIEW process_steps AS
SELECT
    source, industry, client, contract, implementation_id, unnest(range(1, len(tasks) + 1)) AS position, unnest(tasks) AS task_id,
    unnest(list_prepend(NULL, tasks[:-2])) AS before_task_id, unnest(task_actors) AS actor, unnest(actor_groups) AS actor_group,
    unnest(list_prepend(NULL, task_actors[:-2])) AS before_actor, unnest(task_started_at) AS started_at,
    unnest(task_duration_ms) AS work_ms, unnest(task_wait_ms) AS wait_ms, unnest(task_cost_usd) AS cost_usd
FROM wkg_cases
WHERE kind IS DISTINCT FROM 'model'; -- a lake of an older version does not tell the kinds apart
