-- Every edge of workflows.
SELECT workflow_id, src, dst, data_type, gamma, origin
FROM workflows_edges
WHERE workflow_id = ANY($workflows)
ORDER BY src, dst
