-- Every decision of a person on a ranked workflow, the last first, and where its workflow stands now.
-- opus query decisions
SELECT
    d.client, d.contract, d.intake, d.number, d.decision, d.workflow_id, d.why, d.decided_by, d.decided_at,
    o.rank AS rank_now, o.decision AS applied, o.better_workflow_id, o.better_by_usd,
    (
        SELECT any_value(first.decision_note) FROM workflows_optimized AS first
        WHERE first.client = d.client AND first.contract = d.contract AND first.intention_id = d.intention_id
            AND first.decision_number = d.number
    ) AS note
FROM decisions AS d
LEFT JOIN workflows_optimized AS o
    ON o.client = d.client AND o.contract = d.contract AND o.intention_id = d.intention_id
    AND (o.decision_number = d.number AND o.decision IS NOT NULL OR o.decision IS NULL AND o.workflow_id = d.workflow_id)
ORDER BY d.client, d.contract, d.number DESC;
