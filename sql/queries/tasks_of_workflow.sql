-- The steps of one workflow (by default of the best Reward of all), with what each costs and what that rests on.
-- opus query tasks_of_workflow --set workflow=WORKFLOW
SELECT
    t.position, t.kind, t.title AS task, t.actor_kind, t.model, t.start_ms, t.finish_ms, t.duration_ms, t.duration_basis, t.wait_ms_p50, t.wait_ms_p90, t.wait_basis,
    t.cost_usd, t.cost_basis, t.p, t.p_basis, t.success_probability, t.origin, t.asked_by, t.similar_share,
    t.model_share, t.evidence, t.task_id, t.workflow_id
FROM workflows_tasks AS t
WHERE t.workflow_id = coalesce(
    getvariable('workflow')::VARCHAR,
    (SELECT workflow_id FROM workflows_optimized WHERE rank = 1 ORDER BY reward_usd DESC, workflow_id LIMIT 1)
)
ORDER BY t.position;
