-- The cases of history nearest to each intake: what the baseline and the history backend rest on.
-- opus query cases_behind
SELECT
    n.client, n.contract, i.folder AS intake, n.similarity, h.source, h.case_id, h.path, h.title, h.success, h.cost_usd,
    h.ended_at - h.started_at AS duration, list_transform(h.tasks, lambda step: step.task_key) AS task_keys, n.implementation_id
FROM generation_neighbours AS n
JOIN generation_intakes AS i USING (client, contract, intake_id)
LEFT JOIN history_implementations AS h USING (implementation_id)
ORDER BY n.client, n.contract, i.folder, n.similarity DESC, n.implementation_id;
