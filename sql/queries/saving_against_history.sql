-- Saving of the rank-1 workflows against how history carried the work out, by contract (NULL where history has no cost).
-- opus query saving_against_history
-- Savings are of the `compared` intentions: of work that no case of history did as a whole there is nothing to compare with.
WITH best AS (
    SELECT o.client, o.contract, o.cost_usd, o.baseline_cost_usd, o.duration_ms, o.baseline_duration_ms, o.success_probability,
        o.baseline_success, r.uplift_usd
    FROM workflows_optimized AS o
    LEFT JOIN reports_reward AS r USING (client, contract, intake_id, intention_id)
    WHERE o.rank = 1
)
SELECT
    client, contract, count(*) AS intentions, count(baseline_cost_usd) AS compared,
    sum(cost_usd) AS cost_usd,
    sum(baseline_cost_usd) AS baseline_cost_usd,
    sum(baseline_cost_usd - cost_usd) AS saving_usd,
    sum(baseline_cost_usd - cost_usd) / nullif(sum(baseline_cost_usd) FILTER (cost_usd IS NOT NULL), 0) AS saving_share,
    sum(uplift_usd) AS reward_uplift_usd,
    avg(success_probability) AS success_probability,
    avg(baseline_success) AS baseline_success,
    avg(duration_ms) / 3600000 AS hours,
    avg(baseline_duration_ms) / 3600000 AS baseline_hours
FROM best
GROUP BY client, contract
ORDER BY client, contract;
