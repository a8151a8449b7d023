-- Saving of the rank-1 workflows against what the nearest cases of history paid for the same steps, by contract (NULL where that is unknown).
-- opus query saving_against_history
-- Savings are of the `compared` intentions; they are the sums of the savings of the workflows' steps, as in workflows_tasks and reports_cost.
-- They are of the same steps in cheaper ways. `repetition_usd` is for repetitions avoided, `left_out_usd` for steps left out less those added; `cheaper_usd` is the sum of the three.
-- `success_probability` is estimated for the workflows, `similar_cases_succeeded_share` counted over the nearest cases of known outcome.
-- `cost_assumed_share`: share of cost_usd that rests on estimates and stated defaults; `cost_unknown_steps` are in no figure.
WITH best AS (
    SELECT o.*, r.uplift_usd
    FROM workflows_optimized AS o
    LEFT JOIN reports_reward AS r USING (client, contract, intake_id, intention_id)
    WHERE o.rank = 1
)
SELECT
    client, contract, count(*) AS intentions, count(saving_usd) AS compared,
    sum(cost_usd) AS cost_usd,
    sum(cost_usd * cost_assumed_share) / nullif(sum(cost_usd), 0) AS cost_assumed_share,
    sum(cost_unknown_steps) AS cost_unknown_steps,
    sum(baseline_cost_usd) AS baseline_cost_usd,
    sum(saving_usd) AS saving_usd,
    sum(saving_usd) / nullif(sum(baseline_cost_usd), 0) AS saving_share,
    sum(repetition_usd) AS repetition_usd, sum(left_out_usd) AS left_out_usd, sum(cheaper_usd) AS cheaper_usd,
    sum(uplift_usd) AS reward_uplift_usd,
    avg(success_probability) AS success_probability,
    avg(baseline_success) AS similar_cases_succeeded_share,
    avg(duration_ms) / 3600000 AS touch_hours,
    sum(duration_unknown_steps) AS duration_unknown_steps,
    avg(baseline_duration_ms) / 3600000 AS baseline_touch_hours,
    avg(lead_time_ms_p50) / 3600000 AS lead_hours,
    avg(baseline_lead_time_ms) / 3600000 AS baseline_lead_hours
FROM best
GROUP BY client, contract
ORDER BY client, contract;
