-- The most frequent tasks, of an industry (NULL = all), with how many there are.
SELECT task_id, count(*) OVER () AS of_tasks
FROM wkg_tasks
WHERE $industry IS NULL OR list_contains(industries, $industry)
ORDER BY implementations DESC, task_id
LIMIT $most
