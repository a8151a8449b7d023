SELECT source, industry, client, title AS kind_of_case, list_transform(tasks, lambda t: t.task_key) AS task_keys, weight, success,
  CASE WHEN len(list_filter(tasks, lambda t: t.predecessors IS NOT NULL)) > 0 THEN list_transform(tasks, lambda t: t.predecessors) END
    AS predecessors,
  success IS NOT NULL AND expected_outcome IS DISTINCT FROM false AS known
FROM implementations
