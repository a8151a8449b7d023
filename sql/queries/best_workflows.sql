-- The rank-1 workflow of every intake, with what the nearest cases of history paid for the same steps, and what its totals rest on.
-- opus query best_workflows
-- Dollars of Reward are NULL where no gain is stated; ranked_by says what ranks then.
SELECT
    o.client, o.contract, i.folder AS intake, o.title AS workflow, o.workflow_id,
    o.reward_usd, o.reward_usd_p05, o.reward_usd_p95, o.ranked_by, o.success_probability,
    o.cost_usd, o.cost_assumed_share, o.cost_unknown_steps, o.baseline_cost_usd, o.saving_usd,
    o.duration_ms, o.duration_assumed_share, o.duration_unknown_steps,
    o.feasible, o.verdict, o.verdict_reason, o.unread, n.rules_not_applied, o.tasks, o.observed_share
FROM workflows_optimized AS o
JOIN generation_intakes AS i USING (client, contract, intake_id)
LEFT JOIN generation_intentions AS n USING (client, contract, intake_id, intention_id)
WHERE o.rank = 1
ORDER BY o.client, o.contract, i.folder, o.intention_id;
