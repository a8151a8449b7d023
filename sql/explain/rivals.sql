-- The other ranked workflows of the same Intention: how they differ from this one in figures and in steps.
WITH
    this AS (FROM workflows_optimized WHERE workflow_id = $workflow),
    steps AS (
        SELECT workflow_id, list(title ORDER BY position) AS titles
        FROM workflows_tasks WHERE kind IN ('task', 'review') GROUP BY workflow_id
    )
SELECT
    o.rank, o.workflow_id, o.reward_usd, o.cost_usd, o.success_probability, o.feasible, o.violations, o.penalty, o.duration_ms, o.beats_next,
    list_filter(mine.titles, lambda s: NOT list_contains(theirs.titles, s)) AS only_here,
    list_filter(theirs.titles, lambda s: NOT list_contains(mine.titles, s)) AS only_there
FROM this
JOIN workflows_optimized AS o USING (client, contract, intake_id, intention_id)
LEFT JOIN steps AS mine ON mine.workflow_id = this.workflow_id
LEFT JOIN steps AS theirs ON theirs.workflow_id = o.workflow_id
WHERE o.workflow_id <> this.workflow_id
ORDER BY o.rank
