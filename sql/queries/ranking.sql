-- Every ranked workflow of every intake: the alternatives, and what separates them.
-- opus query ranking --format csv
-- Dollars of Reward are NULL where no gain is stated; ranked_by says what ranks then, ahead_by what told a rank from the next one.
SELECT
    o.client, o.contract, i.folder AS intake, o.intention_id, o.rank, o.workflow_id, o.title AS workflow,
    o.reward_usd, o.reward_usd - first_value(o.reward_usd) OVER alternatives AS behind_best_usd,
    o.reward_usd_p05, o.reward_usd_p95, o.beats_next, o.verdict,
    o.ranked_by, o.ahead_by, o.success_probability, o.conformity, o.cost_usd, o.cost_assumed_share, o.cost_unknown_steps,
    o.duration_ms, o.duration_assumed_share, o.duration_unknown_steps, o.lead_time_ms_p50, o.lead_time_ms_p90, o.p_deadline,
    o.feasible, o.violations, o.in_history
FROM workflows_optimized AS o
JOIN generation_intakes AS i USING (client, contract, intake_id)
WINDOW alternatives AS (PARTITION BY o.client, o.contract, o.intention_id ORDER BY o.rank)
ORDER BY o.client, o.contract, i.folder, o.intention_id, o.rank;
