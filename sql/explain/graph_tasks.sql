-- The tasks of a picture with the figures that it shows.
SELECT
    task_id, title, industries, implementations, p, p_lower, p_upper, p_basis, p_n, q, q_basis, q_n,
    duration_ms_p50, duration_basis, cost_usd_p50, cost_basis, component, community
FROM wkg_tasks
WHERE list_contains($tasks, task_id)
ORDER BY implementations DESC, task_id
