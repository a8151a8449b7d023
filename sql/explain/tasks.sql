-- The tasks of the WKG, with the names that history has for each; an industry, or a text in one of its names (NULL = all).
WITH named AS (
    SELECT
        task_id,
        count(*) AS keys,
        list(DISTINCT title ORDER BY title) AS names,
        list_sort(list_distinct(flatten(list(former_task_ids)))) AS former_task_ids
    FROM wkg_task_aliases
    GROUP BY task_id
)
SELECT t.title, t.task_id, t.industries, t.implementations, t.sources, n.keys, n.names, n.former_task_ids
FROM wkg_tasks AS t
JOIN named AS n USING (task_id)
WHERE ($industry IS NULL OR list_contains(t.industries, $industry))
    AND ($text IS NULL OR contains(lower(t.title), lower($text)) OR list_bool_or([contains(lower(name), lower($text)) FOR name IN n.names]))
ORDER BY t.industries, t.implementations DESC, t.task_id
