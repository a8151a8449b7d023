-- What each task costs over a contract's rank-1 workflows, and what the nearest cases of history paid for it.
-- opus query cost_by_task
SELECT
    client, contract, title AS task, workflows, cost_usd, cost_compute_usd, cost_model_usd, cost_human_usd,
    share, baseline_cost_usd, saving_usd, observed_share, task_id
FROM reports_cost
ORDER BY client, contract, cost_usd DESC, task_id;
