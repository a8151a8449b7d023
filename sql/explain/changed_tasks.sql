-- The tasks at the ends of changed edges, and the most frequent ones that came or went; those that went with their last figures.
WITH
    gone AS (FROM old_tasks ANTI JOIN wkg_tasks USING (task_id)),
    came AS (SELECT task_id FROM wkg_tasks ANTI JOIN old_tasks USING (task_id)),
    every AS (
        SELECT *, CASE WHEN task_id IN (SELECT task_id FROM came) THEN 'added' ELSE 'same' END AS change FROM wkg_tasks
        UNION ALL BY NAME SELECT *, 'removed' AS change FROM gone
    ),
    most AS (SELECT task_id FROM every WHERE change <> 'same' ORDER BY implementations DESC, task_id LIMIT $most)
SELECT * FROM every
WHERE list_contains($tasks, task_id) OR task_id IN (SELECT task_id FROM most)
ORDER BY implementations DESC, task_id
