-- The names under which history knows a task, and whether its source has cases of this client, or of nobody named.
SELECT DISTINCT source || '/' || task_key AS name,
    source IN (SELECT source FROM wkg_cases WHERE client IS NULL OR client = $client) AS is_own
FROM wkg_task_aliases WHERE task_id = $task_id ORDER BY name
