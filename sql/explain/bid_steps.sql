-- The steps of the best workflow of each Intention of the client, with what history tells of the cost of the way in which each is done, for `opus bid`.
SELECT
    t.workflow_id, t.title, coalesce(t.model, t.actor_group, t.actor_kind, 'not known') AS done_by, t.actor_kind, t.cost_usd, t.cost_human_usd,
    t.cost_basis, t.duration_ms, w.cost_usd_deviation, w.cost_n
FROM workflows_tasks AS t
JOIN workflows_optimized AS o USING (client, contract, workflow_id)
LEFT JOIN wkg_task_implementations AS w
    ON t.task_id = w.task_id AND t.actor_kind IS NOT DISTINCT FROM w.actor_kind AND t.model IS NOT DISTINCT FROM w.model
    AND t.actor_group IS NOT DISTINCT FROM w.actor_group
WHERE o.rank = 1 AND t.client = $client AND ($contract IS NULL OR t.contract = $contract) AND t.kind IN ('task', 'review')
ORDER BY t.workflow_id, t.position;
