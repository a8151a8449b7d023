-- What the search by Reward found for a workflow of the current result, from the published plan and from the tasks as history does them.
-- Of several searches the one with the most scored workflows.
SELECT i.*
FROM programs_improvements AS i
SEMI JOIN workflows_optimized AS w USING (workflow_id, result)
WHERE i.workflow_id = $workflow
QUALIFY row_number() OVER (PARTITION BY start ORDER BY calls DESC, improvement) = 1
ORDER BY start DESC
