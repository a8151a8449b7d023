-- Workflows, each with its intake, its Intention and the pointer that shows it.
SELECT
    o.*, i.folder AS intake, i.title AS intake_title, i.content_hash AS intake_hash, i.gain_basis, i.constraints, n.constraints AS demands, n.rules_not_applied, n.resolved, n.goal,
    r.published_at,
    list_transform(
        list_filter(i.elements, lambda e: e.left_out IS NOT NULL), lambda e: concat(e.role, '/', e.name, ': ', e.left_out)
    ) AS left_out,
    (SELECT max(rank) FROM workflows_optimized AS a WHERE a.intention_id = o.intention_id AND a.intake_id = o.intake_id) AS ranks,
    d.last.decision AS last_decision, d.last.number AS last_number, d.last.why AS last_why, d.last.decided_by AS last_by,
    coalesce((
        SELECT max(a.decision_number) FROM workflows_optimized AS a WHERE a.intention_id = o.intention_id AND a.intake_id = o.intake_id
    ), 0) AS applied_number
FROM workflows_optimized AS o
JOIN generation_intakes AS i USING (client, contract, intake_id)
LEFT JOIN generation_intentions AS n USING (client, contract, intake_id, intention_id)
LEFT JOIN current_results AS r USING (client, contract)
LEFT JOIN (
    SELECT client, contract, workflow_id, arg_max({'number': number, 'decision': decision, 'why': why, 'decided_by': decided_by}, number) AS last
    FROM decisions GROUP BY client, contract, workflow_id
) AS d USING (client, contract, workflow_id)
WHERE o.workflow_id = ANY($workflows)
