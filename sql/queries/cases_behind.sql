-- The cases of history nearest to each intake: what the baseline and the history backend rest on.
-- opus query cases_behind
-- Costs, savings and times of history are over those with is_compared.
-- Of cases of other clients there are figures alone: no name, no id and no text.
WITH near AS (
    SELECT n.*, i.folder AS intake, h.client IS NULL OR h.client = n.client AS is_own, h.source, h.case_id, h.path, h.title, h.success,
        h.cost_usd, h.ended_at - h.started_at AS duration, list_transform(h.tasks, lambda step: step.task_key) AS task_keys
    FROM generation_neighbours AS n
    JOIN generation_intakes AS i USING (client, contract, intake_id)
    LEFT JOIN history_implementations AS h USING (implementation_id)
)
SELECT
    n.client, n.contract, n.intake, n.similarity, n.is_compared, if(is_own, n.source, 'another client') AS source,
    if(is_own, n.case_id, NULL) AS case_id, if(is_own, n.path, NULL) AS path, if(is_own, n.title, NULL) AS title, n.success,
    n.cost_usd, n.duration, if(is_own, n.task_keys, NULL) AS task_keys, n.implementation_id
FROM near AS n
ORDER BY n.client, n.contract, n.intake, n.similarity DESC, n.implementation_id;
