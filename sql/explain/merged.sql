-- Every raw key behind a task that has more than one: where it stands, how it came to the task, and how alike it is to the task's name.
SELECT t.title AS task, t.task_id, a.source, a.industry, a.task_key, a.title AS name, a.method, a.similarity, a.former_task_ids
FROM wkg_task_aliases AS a
JOIN wkg_tasks AS t USING (task_id)
SEMI JOIN (SELECT task_id FROM wkg_task_aliases GROUP BY task_id HAVING count(*) > 1) AS merged ON merged.task_id = a.task_id
WHERE ($industry IS NULL OR list_contains(t.industries, $industry))
    AND ($text IS NULL OR t.task_id IN (SELECT task_id FROM wkg_task_aliases WHERE contains(lower(title), lower($text))))
ORDER BY
    bool_or(a.method = 'embedding') OVER (PARTITION BY a.task_id) DESC, bool_or(a.method = 'pinned') OVER (PARTITION BY a.task_id) DESC,
    t.industries, t.title, t.task_id, a.source, a.industry, a.task_key
