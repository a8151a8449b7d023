-- Every ranked workflow of a contract with its intake, its goal and what history's way earns.
SELECT
    o.*, i.folder AS intake, coalesce(i.title, i.folder) AS intake_title, i.gain_basis, n.goal, n.rules_not_applied,
    w.baseline_reward_usd, w.uplift_usd, w.distance, w.wkg_coverage,
    (
        SELECT max(near.similarity) FROM generation_neighbours AS near
        WHERE near.intake_id = o.intake_id AND near.intention_id = o.intention_id
    ) AS nearest,
    (
        SELECT count(*) FILTER (near.is_compared) FROM generation_neighbours AS near
        WHERE near.intake_id = o.intake_id AND near.intention_id = o.intention_id
    ) AS compared,
    (
        SELECT list(t.title ORDER BY t.position)
        FROM workflows_tasks AS t
        WHERE t.workflow_id = o.workflow_id AND t.kind IN ('task', 'review')
    ) AS steps,
    (
        SELECT count(*) FILTER (t.cost_usd IS NULL AND t.duration_ms IS NOT NULL AND t.actor_kind IS NULL)
        FROM workflows_tasks AS t
        WHERE t.workflow_id = o.workflow_id AND t.kind IN ('task', 'review')
    ) AS steps_of_unknown_kind,
    d.last.decision AS last_decision, d.last.number AS last_number, d.last.why AS last_why, d.last.decided_by AS last_by,
    coalesce((
        SELECT max(a.decision_number) FROM workflows_optimized AS a WHERE a.intention_id = o.intention_id AND a.intake_id = o.intake_id
    ), 0) AS applied_number
FROM workflows_optimized AS o
JOIN generation_intakes AS i USING (client, contract, intake_id)
LEFT JOIN generation_intentions AS n USING (client, contract, intake_id, intention_id)
LEFT JOIN reports_reward AS w USING (client, contract, intake_id, intention_id)
LEFT JOIN (
    SELECT client, contract, workflow_id, arg_max({'number': number, 'decision': decision, 'why': why, 'decided_by': decided_by}, number) AS last
    FROM decisions GROUP BY client, contract, workflow_id
) AS d USING (client, contract, workflow_id)
WHERE o.client = $client AND o.contract = $contract
ORDER BY i.folder, o.intention_id, o.rank
