-- The ways each task has been carried out: people, programs, models, at what price and how reliably.
-- opus query ways_of_task
SELECT
    t.title AS task, t.industries, w.actor_kind, w.model, w.actor_group, w.implementations,
    w.p, w.p_n, w.basis, w.cost_usd_mean, w.cost_basis, w.duration_ms_mean, w.duration_basis, w.task_id
FROM wkg_task_implementations AS w
JOIN wkg_tasks AS t USING (task_id)
ORDER BY t.title, w.task_id, w.implementations DESC, w.actor_kind, w.model, w.actor_group;
