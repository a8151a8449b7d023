-- What each task costs over a contract's rank-1 workflows, and what the nearest cases of history paid for it.
-- opus query cost_by_task
-- The savings of the tasks of a contract add up to its saving in saving_against_history.
SELECT
    client, contract, title AS task, workflows, cost_usd, cost_assumed_share, cost_unknown_steps,
    cost_compute_usd, cost_model_usd, cost_human_usd, share, baseline_cost_usd, saving_usd, compared_steps,
    duration_ms, duration_assumed_share, duration_unknown_steps, observed_share, task_id
FROM reports_cost
ORDER BY client, contract, cost_usd DESC, task_id;
