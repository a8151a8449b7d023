-- The cases that came, went or have another content, with the tasks that they had and have. Cases of sources that did not change are not
-- among old_cases and new_cases (views: source, implementation_id, content_hash, tasks). Where no hash is known, the tasks decide.
SELECT
    coalesce(n.source, o.source) AS source, implementation_id,
    CASE WHEN o.source IS NULL THEN 'added' WHEN n.source IS NULL THEN 'removed' ELSE 'changed' END AS change,
    coalesce(o.tasks, []) AS tasks_before, coalesce(n.tasks, []) AS tasks_after
FROM old_cases AS o FULL JOIN new_cases AS n USING (implementation_id)
WHERE o.source IS NULL OR n.source IS NULL OR o.content_hash IS DISTINCT FROM n.content_hash
    OR (o.content_hash IS NULL AND o.tasks IS DISTINCT FROM n.tasks)
ORDER BY implementation_id
