-- The rows of history behind every step of a workflow: each case that carried the task out, with the time, cost and outcome it had.
-- opus query audit_figures --set workflow=WORKFLOW
WITH
    this AS (
        FROM workflows_optimized
        WHERE workflow_id = coalesce(
            getvariable('workflow')::VARCHAR,
            (SELECT workflow_id FROM workflows_optimized WHERE rank = 1 ORDER BY reward_usd DESC, workflow_id LIMIT 1)
        )
    ),
    step AS (
        SELECT t.* FROM workflows_tasks AS t JOIN this USING (client, contract, result, workflow_id)
        WHERE t.task_id IS NOT NULL
    ),
    carried_out AS (
        SELECT h.implementation_id, h.source, h.case_id, h.path, h.success AS case_success, a.task_id, done.*
        FROM history_implementations AS h
        CROSS JOIN LATERAL (SELECT unnest(h.tasks, max_depth := 2)) AS done
        JOIN wkg_cases AS c USING (implementation_id)
        JOIN (SELECT DISTINCT source, task_key, task_id FROM wkg_task_aliases SEMI JOIN step USING (task_id)) AS a
            ON a.source = h.source AND a.task_key = done.task_key AND list_contains(c.tasks, a.task_id)
    )
SELECT
    s.position, s.title AS step, s.p, s.p_basis, s.cost_usd, s.cost_basis, s.duration_ms, s.duration_basis, s.evidence,
    n.similarity, d.source, d.case_id, d.path, d.position AS case_position, d.task_key, d.actor_kind, d.model, d.started_at,
    d.duration_ms AS took_ms, d.cost_usd AS cost_then_usd, d.success, d.case_success, d.implementation_id, s.task_id
FROM step AS s
JOIN carried_out AS d
    ON d.task_id = s.task_id AND d.actor_kind IS NOT DISTINCT FROM s.actor_kind AND d.model IS NOT DISTINCT FROM s.model
LEFT JOIN generation_neighbours AS n
    ON n.implementation_id = d.implementation_id AND n.intake_id = s.intake_id AND n.intention_id = s.intention_id
ORDER BY s.position, n.similarity DESC NULLS LAST, d.source, d.case_id, case_position;
