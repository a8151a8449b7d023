-- What a row of reports/cost adds up: the rank-1 workflows that do the task, each with its part; `opus query audit` goes on from there.
-- opus query audit_cost --set client=CLIENT --set contract=CONTRACT --set task=TASK_ID
-- Without a client, contract or task, all are meant. The parts of a row add up to its cost_usd.
SELECT
    c.client, c.contract, c.task_id, c.title, c.cost_usd AS row_cost_usd, o.workflow_id, t.node, t.cost_usd, t.cost_basis, t.duration_ms,
    i.folder AS intake, o.intention_id, o.result
FROM reports_cost AS c
JOIN workflows_tasks AS t
    ON t.client = c.client AND t.contract = c.contract AND t.result = c.result AND c.task_id = coalesce(t.task_id, t.kind)
    AND t.kind IN ('task', 'review')
JOIN workflows_optimized AS o
    ON o.client = t.client AND o.contract = t.contract AND o.result = t.result AND o.workflow_id = t.workflow_id
JOIN generation_intakes AS i
    ON i.client = o.client AND i.contract = o.contract AND i.result = o.result AND i.intake_id = o.intake_id
WHERE o.rank = 1
    AND c.client = coalesce(getvariable('client')::VARCHAR, c.client)
    AND c.contract = coalesce(getvariable('contract')::VARCHAR, c.contract)
    AND c.task_id = coalesce(getvariable('task')::VARCHAR, c.task_id)
ORDER BY c.client, c.contract, c.cost_usd DESC, c.task_id, o.workflow_id, t.node;
