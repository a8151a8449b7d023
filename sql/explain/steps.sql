-- The steps of a workflow in order, each with the steps it directly follows.
SELECT
    t.node, t.position, t.kind, t.task_id, t.title, t.instructions, t.actor_kind, t.model, t.actor_group, t.p, t.p_basis, t.q, t.q_basis, t.success_probability,
    t.cost_usd, t.cost_basis, t.duration_ms, t.duration_basis, t.start_ms, t.finish_ms, t.wait_ms_p50, t.wait_ms_p90, t.wait_basis, t.wait_n, t.origin, t.evidence,
    t.cohesion, t.coupling, t.observability, t.hygiene,
    (SELECT any_value(w.title) FROM wkg_tasks AS w WHERE w.task_id = t.nearest_task_id) AS nearest,
    (SELECT list(before.position ORDER BY before.position)
     FROM workflows_edges AS e
     JOIN workflows_tasks AS before ON before.workflow_id = e.workflow_id AND before.node = e.src
     WHERE e.workflow_id = t.workflow_id AND e.dst = t.node) AS follows
FROM workflows_tasks AS t
WHERE t.workflow_id = $workflow
ORDER BY t.position
