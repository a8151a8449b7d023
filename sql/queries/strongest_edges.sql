-- The most trodden ways from one task to the next.
-- opus query strongest_edges
SELECT
    src.title AS src_task, dst.title AS dst_task, src.industries, e.transitions, e.variants, e.gamma, e.probability, e.wait_ms_mean
FROM wkg_edges AS e
JOIN wkg_tasks AS src ON src.task_id = e.src
JOIN wkg_tasks AS dst ON dst.task_id = e.dst
ORDER BY e.transitions DESC, e.src, e.dst
LIMIT 50;
