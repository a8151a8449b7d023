-- Every edge of a workflow.
SELECT src, dst, data_type, gamma, origin
FROM workflows_edges
WHERE workflow_id = $workflow
ORDER BY src, dst
