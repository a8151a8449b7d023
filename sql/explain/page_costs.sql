-- What each task costs over a contract's rank-1 workflows.
FROM reports_cost
WHERE client = $client AND contract = $contract
ORDER BY cost_usd DESC, task_id
