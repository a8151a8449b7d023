-- Workflows of contracts before and after the search by Reward: what was earned, by which edits, and whether the plan at the beginning was published.
-- opus query program_improvements
SELECT
    i.client, i.contract, i.workflow_id, i.rank, i.start, i.calls, i.reward_before_usd, i.reward_after_usd, i.success_before, i.success_after,
    i.reward_after_usd - i.reward_before_usd AS earned_usd, i.keeps_limits_before, i.keeps_limits_after, i.penalty_before, i.penalty_after, i.edits,
    w.workflow_id IS NOT NULL AS is_current, i.result
FROM programs_improvements AS i
LEFT JOIN workflows_optimized AS w USING (workflow_id, result)
ORDER BY i.client, i.contract, earned_usd DESC NULLS LAST, i.workflow_id, i.start, i.result;
