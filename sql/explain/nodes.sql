-- Every node of a workflow in its order, with all that is known of it.
FROM workflows_tasks
WHERE workflow_id = $workflow
ORDER BY position
