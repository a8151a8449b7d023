-- The cases of history that carried a task out: the intake's nearest first, then the rest.
SELECT
    n.similarity, h.source, h.case_id, h.path, h.title, h.success AS case_success,
    step.position, step.task_key, step.actor, step.actor_kind, step.model, step.started_at, step.duration_ms, step.cost_usd, step.success,
    count(*) OVER () AS found, count(n.similarity) OVER () AS near
FROM history_implementations AS h
JOIN wkg_cases AS c USING (implementation_id)
CROSS JOIN LATERAL (SELECT unnest(h.tasks) AS step) AS steps
LEFT JOIN generation_neighbours AS n
    ON n.implementation_id = h.implementation_id AND n.intake_id = $intake_id AND n.intention_id = $intention_id
WHERE list_contains(c.tasks, $task_id) AND list_contains($task_keys, h.source || '/' || step.task_key)
ORDER BY n.similarity DESC NULLS LAST, h.source, h.case_id, step.position
LIMIT $limit
