-- What tasks are called, and in which industries: for finding one by what a person types.
SELECT task_id, title, industries FROM wkg_tasks ORDER BY implementations DESC, task_id
