-- The ranked workflows of a client, a contract or an intake (NULL = all), down to a rank.
SELECT
    o.client, o.contract, i.folder AS intake, o.intention_id, o.rank, o.workflow_id, o.title AS workflow,
    o.reward_usd, o.reward_usd_p05, o.reward_usd_p95, o.beats_next, o.best_share, o.success_probability, o.cost_usd, o.baseline_cost_usd, o.duration_ms, o.baseline_duration_ms,
    o.feasible, o.violations, o.verdict, o.in_history, o.tasks, o.observed_share,
    (
        SELECT list(t.title ORDER BY t.position)
        FROM workflows_tasks AS t
        WHERE t.workflow_id = o.workflow_id AND t.kind IN ('task', 'review')
    ) AS steps,
    (
        SELECT list(concat_ws(' ', t.actor_kind, t.model, t.actor_group) ORDER BY t.position)
        FROM workflows_tasks AS t
        WHERE t.workflow_id = o.workflow_id AND t.kind IN ('task', 'review')
    ) AS actors
FROM workflows_optimized AS o
JOIN generation_intakes AS i USING (client, contract, intake_id)
WHERE ($client IS NULL OR o.client = $client)
    AND ($contract IS NULL OR o.contract = $contract)
    AND ($intake IS NULL OR i.folder = $intake)
    AND ($top IS NULL OR o.rank <= $top)
ORDER BY o.client, o.contract, i.folder, o.intention_id, o.rank
