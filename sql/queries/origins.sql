-- Where the steps of the best workflow of each intake come from: similar cases, its own procedure, or the trained work model.
-- opus query origins
SELECT
    w.client, w.contract, i.title AS intake, w.tasks AS steps, w.share_similar_cases, w.share_procedure, w.share_model,
    count(*) FILTER (WHERE t.kind = 'task' AND len(t.asked_by) = 0) AS asked_by_nothing,
    count(*) FILTER (WHERE t.origin = 'new') AS new_steps, w.verdict, w.workflow_id
FROM workflows_optimized AS w
INNER JOIN workflows_tasks AS t USING (client, contract, intake_id, workflow_id)
INNER JOIN generation_intakes AS i USING (client, contract, intake_id)
WHERE w.rank = 1
GROUP BY ALL
ORDER BY w.client, w.contract, intake, w.workflow_id;
