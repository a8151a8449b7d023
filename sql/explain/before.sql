-- The steps of a workflow whose success depends on the step directly before them, with what history counted of the two in this order.
-- A review is looked through: the step before is the one that it reviews.
SELECT before.title AS src, t.title AS dst, e.dst_p AS p, e.dst_p_n AS n, e.dst_p_gamma AS gamma, w.p AS of_task
FROM workflows_edges AS l
JOIN workflows_tasks AS before ON before.workflow_id = l.workflow_id AND before.node = regexp_replace(l.src, '_review$', '')
JOIN workflows_tasks AS t ON t.workflow_id = l.workflow_id AND t.node = l.dst AND t.kind = 'task'
JOIN wkg_edges AS e ON e.src = before.task_id AND e.dst = t.task_id
JOIN wkg_tasks AS w ON w.task_id = t.task_id
WHERE l.workflow_id = $workflow AND e.dst_p_gamma >= $least AND abs(e.dst_p - w.p) >= $difference
ORDER BY t.position, before.position
