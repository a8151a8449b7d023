-- The ranked workflows of a client, a contract or an intake (NULL = all), down to a rank.
SELECT
    o.client, o.contract, i.folder AS intake, o.intention_id, o.rank, o.workflow_id, o.title AS workflow,
    o.gain_usd, o.ranked_by, o.ahead_by, o.reward_usd, o.reward_usd_p05, o.reward_usd_p95, o.beats_next, o.best_share,
    o.success_probability, o.success_unknown_steps,
    o.cost_usd, o.cost_assumed_share, o.cost_unknown_steps, o.baseline_cost_usd, o.saving_usd, o.repetition_usd, o.left_out_usd, o.cheaper_usd,
    o.duration_ms, o.duration_assumed_share, o.duration_unknown_steps, o.baseline_duration_ms,
    o.lead_time_ms_p50, o.lead_time_ms_p90, o.lead_time_basis, o.deadline_hours, o.p_deadline, o.step_deadlines, o.baseline_lead_time_ms,
    o.feasible, o.violations, n.rules_not_applied, o.lacks, o.conditional, o.risks, o.unread, o.verdict, o.completeness, o.decision, o.decision_number, o.decided_why, o.decided_by, o.decision_note,
    o.better_workflow_id, o.better_by_usd, o.in_history, o.tasks, o.observed_share,
    (
        SELECT list(t.title ORDER BY t.position)
        FROM workflows_tasks AS t
        WHERE t.workflow_id = o.workflow_id AND t.kind IN ('task', 'review')
    ) AS steps,
    (
        SELECT list(concat_ws(' ', t.actor_kind, t.model, t.actor_group) ORDER BY t.position)
        FROM workflows_tasks AS t
        WHERE t.workflow_id = o.workflow_id AND t.kind IN ('task', 'review')
    ) AS actors,
    d.last.decision AS last_decision, d.last.number AS last_number, d.last.why AS last_why, d.last.decided_by AS last_by,
    coalesce((
        SELECT max(a.decision_number) FROM workflows_optimized AS a WHERE a.intention_id = o.intention_id AND a.intake_id = o.intake_id
    ), 0) AS applied_number
FROM workflows_optimized AS o
JOIN generation_intakes AS i USING (client, contract, intake_id)
LEFT JOIN (
    SELECT client, contract, workflow_id, arg_max({'number': number, 'decision': decision, 'why': why, 'decided_by': decided_by}, number) AS last
    FROM decisions GROUP BY client, contract, workflow_id
) AS d USING (client, contract, workflow_id)
LEFT JOIN generation_intentions AS n USING (client, contract, intake_id, intention_id)
WHERE ($client IS NULL OR o.client = $client)
    AND ($contract IS NULL OR o.contract = $contract)
    AND ($intake IS NULL OR i.folder = $intake)
    AND ($top IS NULL OR o.rank <= $top)
ORDER BY o.client, o.contract, i.folder, o.intention_id, o.rank
