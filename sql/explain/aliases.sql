-- The names under which history knows a task.
SELECT DISTINCT source || '/' || task_key AS name FROM wkg_task_aliases WHERE task_id = $task_id ORDER BY name
