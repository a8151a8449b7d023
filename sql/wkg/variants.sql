-- Distinct sequences of raw keys, a row per source, client, kind of case and sequence. A case has one sequence, so summing again
-- after keys became tasks counts no case twice. Outcomes count where success was the right one.
WITH cases AS (
  SELECT source, industry, client, title AS kind_of_case, tasks.task_key AS task_keys, weight, success,
    IF(exists(tasks, t -> t.predecessors IS NOT NULL), tasks.predecessors, NULL) AS predecessors,
    success IS NOT NULL AND NOT (expected_outcome <=> false) AS known
  FROM implementations
)
SELECT source, industry, client, kind_of_case, task_keys, predecessors, sum(weight) AS implementations,
  sum(IF(known, weight, 0)) AS success_known, sum(IF(known AND success, weight, 0)) AS successes
FROM cases
GROUP BY source, industry, client, kind_of_case, task_keys, predecessors
