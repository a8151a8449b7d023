-- The cases of history that carried a task out: the intake's nearest first, then the rest. Of cases of other clients
-- there are figures alone: no name, no id and no text.
WITH shown AS (
    SELECT *, client IS NULL OR client = $client AS is_own FROM history_implementations
)
SELECT
    n.similarity, if(is_own, h.source, 'another client') AS source, if(is_own, h.case_id, NULL) AS case_id,
    if(is_own, h.path, NULL) AS path, if(is_own, h.title, NULL) AS title, h.success AS case_success,
    step.position, if(is_own, step.task_key, NULL) AS task_key, if(is_own, step.actor, NULL) AS actor,
    step.actor_kind, step.model, step.started_at, step.duration_ms, step.cost_usd, step.success,
    count(*) OVER () AS found, count(n.similarity) OVER () AS near
FROM shown AS h
JOIN wkg_cases AS c USING (implementation_id)
CROSS JOIN LATERAL (SELECT unnest(h.tasks) AS step) AS steps
LEFT JOIN generation_neighbours AS n
    ON n.implementation_id = h.implementation_id AND n.intake_id = $intake_id AND n.intention_id = $intention_id
WHERE list_contains(c.tasks, $task_id) AND list_contains($task_keys, h.source || '/' || step.task_key)
ORDER BY n.similarity DESC NULLS LAST, h.source, h.case_id, step.position
LIMIT $limit
