-- Intentions whose evidence does not settle which workflow is best: the ranks that may be, each with the chance of it.
-- opus query undecided
-- Dollars of Reward are NULL where no gain is stated; ranked_by says what ranks then.
SELECT
    o.client, o.contract, i.folder AS intake, o.intention_id, o.rank, o.workflow_id, o.title AS workflow,
    o.best_share, o.beats_next, o.verdict, o.reward_usd, o.reward_usd_p05, o.reward_usd_p95,
    first_value(o.reward_usd) OVER alternatives - o.reward_usd AS behind_best_usd, o.ranked_by
FROM workflows_optimized AS o
JOIN generation_intakes AS i USING (client, contract, intake_id)
JOIN reports_reward AS r USING (client, contract, intake_id, intention_id)
WHERE r.verdict = 'undecided' AND (o.rank = 1 OR o.best_share > 0)
WINDOW alternatives AS (PARTITION BY o.client, o.contract, o.intention_id ORDER BY o.rank)
ORDER BY o.client, o.contract, i.folder, o.intention_id, o.rank;
