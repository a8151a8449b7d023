SELECT source, industry, client, title AS kind_of_case, tasks.task_key AS task_keys, weight, success,
  IF(exists(tasks, t -> t.predecessors IS NOT NULL), tasks.predecessors, NULL) AS predecessors,
  success IS NOT NULL AND NOT (expected_outcome <=> false) AS known
FROM implementations
