-- The steps of a workflow whose time or cost is that directly behind the step before them, with the means over all times of the task.
-- A review is looked through: the step before is the one that it reviews.
SELECT before.title AS src, t.title AS dst,
    e.dst_duration_ms_observed AS duration_ms, if(e.dst_duration_gamma >= $least, e.dst_duration_n, 0) AS duration_n, w.duration_ms_mean AS of_task_ms,
    e.dst_cost_usd_observed AS cost_usd, if(e.dst_cost_gamma >= $least, e.dst_cost_n, 0) AS cost_n, w.cost_usd_mean AS of_task_usd
FROM workflows_edges AS l
JOIN workflows_tasks AS before ON before.workflow_id = l.workflow_id AND before.node = regexp_replace(l.src, '_review$', '')
JOIN workflows_tasks AS t ON t.workflow_id = l.workflow_id AND t.node = l.dst AND t.kind = 'task'
JOIN wkg_edges AS e ON e.src = before.task_id AND e.dst = t.task_id
JOIN wkg_tasks AS w ON w.task_id = t.task_id
WHERE l.workflow_id = $workflow AND (e.dst_duration_gamma >= $least OR e.dst_cost_gamma >= $least)
ORDER BY t.position, before.position
