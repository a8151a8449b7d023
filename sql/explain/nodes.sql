-- Every node of workflows in its order, with all that is known of it.
FROM workflows_tasks
WHERE workflow_id = ANY($workflows)
ORDER BY position
