-- Intentions whose verdict is not clear, with the reason: the ranks that may be the best, each with the chance of it.
-- opus query undecided
-- Dollars of Reward are NULL where no gain is stated; ranked_by says what ranks then.
SELECT
    o.client, o.contract, i.folder AS intake, o.intention_id, o.rank, o.workflow_id, o.title AS workflow,
    o.best_share, o.beats_next, r.verdict, first_value(o.verdict_reason) OVER alternatives AS verdict_reason, o.unread, o.reward_usd, o.reward_usd_p05, o.reward_usd_p95,
    first_value(o.reward_usd) OVER alternatives - o.reward_usd AS behind_best_usd, o.ranked_by
FROM workflows_optimized AS o
JOIN generation_intakes AS i USING (client, contract, intake_id)
JOIN reports_reward AS r USING (client, contract, intake_id, intention_id)
WHERE r.verdict <> 'clear' AND (o.rank = 1 OR o.best_share > 0)
WINDOW alternatives AS (PARTITION BY o.client, o.contract, o.intention_id ORDER BY o.rank)
ORDER BY o.client, o.contract, i.folder, o.intention_id, o.rank;
